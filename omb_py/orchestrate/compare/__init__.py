"""``omb-py compare``: two sides are measured in turn and judged."""
