"""Options of a measurement: the table of all of them, and the readers of their values."""
