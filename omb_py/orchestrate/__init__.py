"""Where suites meet results: planning, launching, supervising, collecting."""
