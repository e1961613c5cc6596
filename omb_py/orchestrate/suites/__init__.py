"""Suites: TOML files that list the benchmarks to run with their options."""
