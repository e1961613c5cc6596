"""Starting ranks: launchers, batch systems, cores, environments."""
