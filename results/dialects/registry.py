"""All dialects: ours, and those of installed packages (groups ``omb_py.dialects`` and ``omb_py.readers``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

from omb_py.plug_ins import PlugIns, load_plug_ins
from omb_py.results.dialects.dialect import Dialect
from omb_py.results.dialects.horovod import Horovod
from omb_py.results.dialects.imb import Imb, ImbMulti
from omb_py.results.dialects.nccl import NcclTests, RcclTests
from omb_py.results.dialects.omb import Omb, OmbPy

if TYPE_CHECKING:
    from omb_py.results.dialects.reading import TextReader, WholeReader

ENTRY_POINTS = "omb_py.dialects"
READER_ENTRY_POINTS = "omb_py.readers"
"""Readers that come alone, without a text that omb-py could print."""


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


OURS: tuple[Dialect, ...] = (
    Omb(),
    OmbPy(),
    NcclTests(),
    RcclTests(),
    Imb(),
    ImbMulti(),
    Horovod(),
    Timers(),
    Ucx(),
    Perftest(),
)


_NAMED = {dialect.name: dialect for dialect in OURS}


def installed() -> PlugIns[Dialect]:
    """The dialects of installed packages; none replaces one of ours."""
    return load_plug_ins(ENTRY_POINTS, Dialect, ours=_NAMED.get)


DIALECTS: tuple[Dialect, ...] = (*OURS, *installed().loaded.values())
PLAIN = Dialect()
"""The dialect of forms that are no tool's text: tables, CSV, JSON."""
USUAL = next(dialect for dialect in DIALECTS if dialect.usual)
"""The dialect of a request that asks for none."""
OF_TRAININGS = next(dialect for dialect in DIALECTS if dialect.name and not dialect.for_all)
"""The dialect that only trainings have."""


def dialect_of(form: str) -> Dialect:
    """The dialect of a value of ``--format``; :data:`PLAIN` where it is no tool's text."""
    return next((dialect for dialect in DIALECTS if dialect.name == form), PLAIN)


def translate_line(words: Sequence[str]) -> list[str] | None:
    """A command line of a tool's own programs as words of omb-py; None where no tool knows it. Raises UsageError."""
    return next((line for dialect in DIALECTS if (line := dialect.translate_line(words)) is not None), None)


def printed_names() -> tuple[str, ...]:
    """The dialects in which every benchmark can be printed, as values of ``--format``."""
    return tuple(dialect.name for dialect in DIALECTS if dialect.name and dialect.for_all)


@cache
def readers() -> tuple[TextReader | WholeReader, ...]:
    """All readers, those of text first: ours, and those of installed packages."""
    from omb_py.results.dialects.reading import WholeReader

    own = [reader for dialect in DIALECTS for reader in dialect.readers()]
    return tuple(sorted([*own, *_third_party().loaded.values()], key=lambda reader: isinstance(reader, WholeReader)))


def broken() -> Mapping[str, str]:
    """Name of each third-party dialect or reader that could not be loaded -> the reason."""
    return {**installed().broken, **_third_party().broken}


def _third_party() -> PlugIns[TextReader | WholeReader]:
    from omb_py.results.dialects.reading import TextReader, WholeReader

    return load_plug_ins(READER_ENTRY_POINTS, TextReader, WholeReader, named=False)
