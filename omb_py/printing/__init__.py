"""Rows and reports, printed: one module for each form. The texts of other tools come from their dialects."""
