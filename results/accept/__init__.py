"""Acceptance: criteria, and verdicts on them."""
