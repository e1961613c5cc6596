"""From a request to stored results: planning, launching, supervising, collecting."""
