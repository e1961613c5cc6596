"""What can move bytes: one module a library family, found through :mod:`omb_py.backends.registry`."""
