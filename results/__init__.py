"""Measured results: schema, journal, store, readers and writers. Importing this package loads nothing heavy."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path  # ranks need none

    from omb_py.results.store.provenance import Provenance


def read_provenance(path: str | Path, launch_id: str | None = None) -> Provenance:
    """The provenance of a launch, as :func:`omb_py.results.store.provenance.read_provenance` reads it."""
    from omb_py.results.store.provenance import read_provenance as read  # which loads pyarrow

    return read(path, launch_id)
