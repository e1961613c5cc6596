"""The text of OMB: its tables, printed and read."""
