"""The report as one HTML file, and views as pictures."""
