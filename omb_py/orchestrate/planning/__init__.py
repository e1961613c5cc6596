"""From requests to launches: what is asked for is checked, and planned."""
