"""Views of a store: from its cells to figures, one registry entry a view. The report and the explorer draw them."""
