"""How texts are read: sizes, counts, times, KEY=VALUE, graphs, layouts, traffic matrices."""
