"""Backends, which move bytes: one package a library family, found through :mod:`omb_py.backends.registry`."""
