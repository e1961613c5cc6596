"""Rows and cells for the benches, as the tests of the store and of the dashboards make them."""

from tests.dashboards.conftest import cell
from tests.results.conftest import make_row

__all__ = ["cell", "make_row"]
