"""Options of a measurement: what may be asked for, and how values are read."""
