"""Performance guidelines and their mock-ups."""
