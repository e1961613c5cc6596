"""``omb-py results``: lists, shows, exports, imports and maintains stored runs."""
