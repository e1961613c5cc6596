"""Figures: functions from a table to a view. They know no store."""
