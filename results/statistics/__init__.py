"""Statistics: pure functions. docs/statistics.md says what they promise."""
