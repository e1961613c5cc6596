"""``omb-py dashboard``: the explorer in a browser, a thin shell around the figure functions."""
