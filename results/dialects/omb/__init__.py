"""OMB's C programs: ``osu_latency`` and its like. OMB-Py prints almost the same, and has a reader of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from omb_py.errors import UsageError
from omb_py.results.dialects.dialect import USUAL_OPTIONS, Dialect, Provenances, TextOptions, Transcript
from omb_py.results.dialects.omb.titles import DIALECT
from omb_py.results.store.row import Row
from omb_py.results.units import listed

if TYPE_CHECKING:
    from omb_py.results.dialects.reading import TextReader


_UNITS = ("us", "MB/s", None)


class Omb(Dialect):
    """OMB: the text of omb-py's own results too."""

    name = "osu"
    title = "OMB"
    stored_as = DIALECT
    usual = True

    def translate_line(self, words: Sequence[str]) -> list[str] | None:
        """A line that begins with a program of OMB for NCCL and RCCL, such as ``osu_xccl_allreduce``."""
        from omb_py.results.dialects.omb.titles import TITLED_LIBRARIES, TITLES

        program, *rest = words
        name = program.lower().removeprefix("osu_xccl_")
        if name == program.lower() or name not in TITLES:
            return None
        return [name, "--backend", TITLED_LIBRARIES["NCCL"][0], *rest]

    def transcript(self) -> Transcript:
        from omb_py.results.dialects.omb.transcript import OmbTranscript

        return OmbTranscript()

    def export(self, rows: Sequence[Row], provenance: Provenances, options: TextOptions = USUAL_OPTIONS) -> str:
        from omb_py.results.dialects.omb.transcript import to_osu

        shown = [row for row in rows if self.shows(row)]
        if rows and not shown:
            whys = ("has no value" if row.get("value", 0) is None else f"is in {row['unit']}" for row in rows)
            units = listed(sorted({f"{row['benchmark']} {why}" for row, why in zip(rows, whys, strict=True)}))
            raise UsageError(f"OMB's text has times and MB/s: {units}: --format csv")
        return to_osu(shown, options.percentiles, options.full)

    def shows(self, row: Row) -> bool:
        """A rate of another kind, as images a second, would stand there as a time; a row without a value as nan."""
        return row.get("unit") in _UNITS and row.get("value", 0) is not None

    def readers(self) -> Sequence[TextReader]:
        from omb_py.results.dialects.omb.reader import OsuReader

        return (OsuReader(),)


class OmbPy(Dialect):
    """OMB-Py, whose text is read alone."""

    title = "OMB-Py"

    def readers(self) -> Sequence[TextReader]:
        from omb_py.results.dialects.ombpy import OmbPyText

        return (OmbPyText(),)
