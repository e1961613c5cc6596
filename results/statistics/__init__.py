"""Statistics: pure functions, derived in docs/statistics.md."""
