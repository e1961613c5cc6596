"""``omb-py results``: what lies in the store, and how it is kept small and sound."""
