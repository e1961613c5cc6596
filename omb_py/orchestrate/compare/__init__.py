"""``omb-py compare``: launches of two sides are interleaved and judged."""
