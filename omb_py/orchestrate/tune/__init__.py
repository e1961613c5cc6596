"""``omb-py tune``: which setting of a library is fastest, proved by fresh launches."""
