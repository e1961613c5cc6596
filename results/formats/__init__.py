"""Rows and reports in every format that is printed or written."""
