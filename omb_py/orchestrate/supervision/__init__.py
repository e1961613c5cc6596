"""The parent of a launch: it hears its ranks, names what goes wrong, and ends every process."""
