"""A rank as a process: its supervisor, its node, its children."""
