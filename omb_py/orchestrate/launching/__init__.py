"""Starting ranks: launchers, batch systems, core binding, environments."""
