"""Observers, which read counters around the timed loop of a cell: energy, counts of the library, of the network."""
