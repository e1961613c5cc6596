"""Data and texts of the commands that measure nothing: list, explain, doctor, suite show."""
