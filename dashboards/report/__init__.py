"""The report: one HTML file, or a picture."""
