"""The store in one place: write a launch, find and read the files."""

from __future__ import annotations

from omb_py.results.folder import OnSkip, files
from omb_py.results.launchfile import read_provenance
from omb_py.results.reading import SkippedFile, load, load_table, to_frame, to_rows
from omb_py.results.writing import check_writable, to_table, write_launch

__all__ = [
    "OnSkip",
    "SkippedFile",
    "check_writable",
    "files",
    "load",
    "load_table",
    "read_provenance",
    "to_frame",
    "to_rows",
    "to_table",
    "write_launch",
]
