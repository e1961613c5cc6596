"""From requests to launches: each request is checked, then planned."""
