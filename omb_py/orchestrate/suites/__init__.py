"""Suites: TOML files as lists of requests."""
