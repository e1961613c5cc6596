"""Runs from request to exit code: launches are made, rows are kept and printed."""
