"""``omb-py compare --run``: programs that are not omb-py's own are started in turn, read and judged."""
