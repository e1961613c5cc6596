"""Backends, which move bytes: one package a library family."""
