"""Rows for the tests of printing."""

from tests.results.conftest import make_row

__all__ = ["make_row"]
