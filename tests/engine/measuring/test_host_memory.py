from __future__ import annotations

import mmap
import platform
import sys
from array import array
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from omb_py.engine.measuring import host_memory
from omb_py.engine.measuring.host_memory import HostMemory, available_bytes
from omb_py.engine.program.buffers import MEMORY
from omb_py.errors import EnvironmentProblem, UsageError
from tests.support.machines.mpi import run_command
from tests.support.optional import needs_torch

HERE = tuple(pytest.param(kind, marks=needs_torch if kind == "torch" else ()) for kind in MEMORY)


@pytest.fixture(params=HERE)
def host(request: pytest.FixtureRequest) -> HostMemory:
    return HostMemory(request.param)


def test_an_unknown_kind_is_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"unknown buffer 'nunpy': did you mean numpy\?"):
        HostMemory("nunpy")


@pytest.mark.parametrize("kind", [HERE[0], HERE[3]])
def test_arrays_and_tensors_start_on_a_page(kind: str) -> None:
    host = HostMemory(kind)
    for number, nbytes in enumerate((1, 4095, 4096, 100_001)):
        host.reserve(f"buffer {number}", nbytes)
        assert host.address(f"buffer {number}") % mmap.PAGESIZE == 0


def test_sends_are_filled_with_ones_and_the_rest_with_zeros(host: HostMemory) -> None:
    for name in ("send", "recv", "buf", "ack"):
        host.reserve(name, 100)
    assert [set(host.view(name, 100).tolist()) for name in ("send", "recv", "buf", "ack")] == [{1}, {0}, {0}, {0}]


def test_a_smaller_size_keeps_the_pages_and_what_is_in_them(host: HostMemory) -> None:
    host.reserve("send", 1000)
    host.view("send", 1000)[:] = 7
    before = host.address("send")
    host.reserve("send", 10)
    assert host.address("send") == before and set(host.view("send", 1000).tolist()) == {7}


def test_growing_leaves_nothing_stale(host: HostMemory) -> None:
    host.reserve("recv", 10)
    host.view("recv", 10)[:] = 7
    host.reserve("recv", 100_000)
    assert set(host.view("recv", 100_000).tolist()) == {0}
    view = host.view("recv", 100_000)
    view[-1] = 9
    owner = host.owner("recv")
    assert np.asarray(memoryview(owner) if host.kind != "torch" else owner).view(np.uint8)[99_999] == 9
    assert host.address("recv") == view.ctypes.data


def test_buffers_do_not_overlap(host: HostMemory) -> None:
    names = ["send", "recv", "buf"]
    for name in names:
        host.reserve(name, 5000)
    spans = sorted((host.address(name), host.address(name) + 5000) for name in names)
    assert all(stop <= start for (_, stop), (start, _) in pairwise(spans))


@pytest.mark.parametrize("kind", HERE)
def test_the_owner_is_what_a_program_would_hold(kind: str) -> None:
    host = HostMemory(kind)
    host.reserve("send", 8)
    owner = host.owner("send")
    if kind == "torch":
        import torch

        assert isinstance(owner, torch.Tensor) and owner.data_ptr() == host.address("send")
    else:
        assert isinstance(owner, {"numpy": np.ndarray, "bytearray": bytearray, "array": array}[kind])


def test_a_missing_torch_names_the_line_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(EnvironmentProblem, match=r"--buffer torch needs PyTorch .*: pip install torch==[\d.]+"):
        HostMemory("torch")


class TestAvailable:
    @pytest.fixture
    def files(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """/proc and /sys as files of the test."""

        monkeypatch.setattr(host_memory, "_ROOT", str(tmp_path))
        (tmp_path / "proc").mkdir()
        (tmp_path / "sys/fs/cgroup").mkdir(parents=True)
        (tmp_path / "proc/meminfo").write_text("MemTotal: 9000 kB\nMemFree: 1 kB\nMemAvailable:    4096 kB\n")
        return tmp_path

    def test_is_what_the_kernel_says(self, files: Path) -> None:
        assert available_bytes() == 4096 * 1024

    def test_is_less_where_a_control_group_allows_less(self, files: Path) -> None:
        (files / "sys/fs/cgroup/memory.max").write_text("3000000\n")
        (files / "sys/fs/cgroup/memory.current").write_text("1000000\n")
        assert available_bytes() == 2_000_000

    def test_of_an_unlimited_group_is_the_machine_s(self, files: Path) -> None:
        (files / "sys/fs/cgroup/memory.max").write_text("max\n")
        (files / "sys/fs/cgroup/memory.current").write_text("1000000\n")
        assert available_bytes() == 4096 * 1024

    def test_of_an_old_control_group_counts_too(self, files: Path) -> None:
        (files / "sys/fs/cgroup/memory").mkdir()
        (files / "sys/fs/cgroup/memory/memory.limit_in_bytes").write_text("500\n")
        (files / "sys/fs/cgroup/memory/memory.usage_in_bytes").write_text("600\n")
        assert available_bytes() == 0

    def test_without_meminfo_asks_the_c_library(self, files: Path) -> None:
        (files / "proc/meminfo").unlink()
        assert available_bytes() > 1 << 20


FAULTS = """
import ctypes, resource
from omb_py.engine.measuring.host_memory import settle_heap
if {settled}:
    settle_heap()
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.free.argtypes, libc.memset.argtypes = [ctypes.c_void_p], [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
for call in range(40):
    blocks = [libc.malloc(1 << 20) for _ in range(3)]
    for block in blocks:
        libc.memset(block, 1, 1 << 20)
    for block in blocks:
        libc.free(block)
    if call == 9:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="what glibc's malloc learns is tested")
def test_a_settled_heap_keeps_what_a_call_frees() -> None:
    def faults(settled: bool) -> int:
        words = [sys.executable, "-c", FAULTS.format(settled=settled)]
        return int(run_command(words, check=True).stdout)

    pages = 30 * 3 * (1 << 20) // mmap.PAGESIZE
    assert faults(False) > pages / 4  # every call pays anew, though it allocates what the one before did
    assert faults(True) < pages / 100
