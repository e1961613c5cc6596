"""Runs from request to exit code: launches are started, rows are stored and printed."""
