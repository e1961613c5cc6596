"""The library of this machine: what doctor says of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from omb_py.backends.nccl import library
from omb_py.backends.nccl.capabilities import CAPABILITIES


@pytest.mark.parametrize(
    ("driver", "passed", "text"),
    [(13000, True, "built for CUDA 13"), (12080, False, "CUDA 12.8 at most"), (0, None, "")],
)
def test_doctor_compares_the_library_with_the_driver(
    driver: int, passed: bool | None, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "libnccl.so.2"
    file.write_bytes(b"\0NCCL version 2.28.9+cuda13.0\0")
    monkeypatch.setattr(library, "driver_version", lambda: driver)
    lines = library.driver_check(replace(CAPABILITIES, facts={"library for cuda": str(file)}))
    assert [(line.passed, text in line.text, line.device) for line in lines] == (
        [(passed, True, "cuda")] if driver else []
    )
    assert not library.driver_check(CAPABILITIES)
