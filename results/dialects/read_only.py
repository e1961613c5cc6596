"""Tools whose files are read and whose text omb-py never prints; the readers are loaded when a file is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from omb_py.results.dialects.dialect import Dialect

if TYPE_CHECKING:
    from omb_py.results.dialects.reading import TextReader, WholeReader


class Timers(Dialect):
    """Tools that time programs and functions."""

    title = "pytest-benchmark, pyperf, hyperfine"

    def readers(self) -> Sequence[WholeReader]:
        from omb_py.results.dialects.timers import READERS

        return READERS


class Ucx(Dialect):
    """The tools of UCX and UCC."""

    title = "ucx_perftest, ucc_perftest"

    def readers(self) -> Sequence[TextReader]:
        from omb_py.results.dialects.ucx import UccText, UcxText

        return (UcxText(), UccText())


class Perftest(Dialect):
    """The tools of RDMA verbs."""

    title = "perftest"

    def readers(self) -> Sequence[TextReader]:
        from omb_py.results.dialects.perftest import PerftestText

        return (PerftestText(),)
