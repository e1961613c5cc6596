"""Layouts and numbers are those of the real headers: by the record always, by headers and libraries on demand."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from omb_py.backends.nccl.calls import OPS
from tests.backends.nccl import abi
from tests.support.c_library import COMPILER

FOLDERS = [Path(name) for name in os.environ.get("OMB_PY_NCCL_ABI", "").split(os.pathsep) if name]
RECORDED = json.loads(abi.RECORD.read_text())


@pytest.mark.parametrize("text", RECORDED)
def test_layouts_and_numbers_are_those_that_the_real_header_gave(text: str) -> None:
    assert abi.ours(*abi.library_of(text)) == RECORDED[text]


def test_a_wrong_number_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(OPS, "max", 3)
    assert all(abi.ours(*abi.library_of(text)) != values for text, values in RECORDED.items())


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
def test_a_header_that_differs_is_refused_by_the_compiler(tmp_path: Path) -> None:
    (tmp_path / "nccl.h").write_text("#define NCCL_VERSION_CODE 21903\ntypedef int ncclResult_t;\n")
    with pytest.raises(RuntimeError, match="ncclConfig_t"):
        abi.of_header(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"no libnccl\.so\.2"):
        abi.of_library(tmp_path)


@pytest.mark.abi
@pytest.mark.skipif(not FOLDERS, reason="OMB_PY_NCCL_ABI names no folder with an unpacked wheel of NCCL: make nccl-abi")
@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_real_header_and_library_are_as_ours(folder: Path) -> None:
    text, values, problems = abi.differences(folder)
    assert (problems, values) == ([], abi.ours(*abi.library_of(text)))
