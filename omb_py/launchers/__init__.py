"""What starts ranks: one file for each launcher. A new one is a new file and an entry in :mod:`.registry`."""
