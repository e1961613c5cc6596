from __future__ import annotations

import json
import mmap
import os
import re
import shutil
import struct
import sys
from pathlib import Path

import numpy
import pytest

from omb_py.engine.rank import system_info
from tests.support.machines.mpi import run_command


def elf(*notes: tuple[bytes, int, bytes], kind: int = 4) -> bytes:
    """A 64-bit little-endian ELF file of one segment with notes: (name, type, content)."""
    body = b""
    for name, type_, content in notes:
        name += b"\0"
        body += struct.pack("<III", len(name), len(content), type_)
        body += name + b"\0" * (-len(name) % 4) + content + b"\0" * (-len(content) % 4)
    head = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0, 0, 64, 56, 2, 0, 0, 0)
    segments = struct.pack("<IIQQQQQQ", 1, 0, 0, 0, 0, 0, 0, 0)  # PT_LOAD comes first
    segments += struct.pack("<IIQQQQQQ", kind, 0, 64 + 112, 0, 0, len(body), len(body), 4)
    return head + segments + body


ID = bytes(range(20))


class TestBuildId:
    def test_is_found_among_other_notes(self, tmp_path: Path) -> None:
        file = tmp_path / "lib.so"
        file.write_bytes(elf((b"GNU", 5, b"x" * 5), (b"stapsdt", 3, b"abc"), (b"GNU", 3, ID)))
        assert system_info.build_id(str(file)) == ID.hex()

    @pytest.mark.parametrize(
        "content",
        [
            b"",
            b"text",
            b"\x7fELF",
            b"\x7fELF\x01\x01" + bytes(100),
            elf(),
            elf((b"GNU", 1, ID)),
            elf((b"GNU", 3, ID), kind=6),
            elf((b"GNU", 3, ID))[:100],
            elf((b"GNU", 3, ID))[:64],
        ],
    )
    def test_is_none_where_there_is_none(self, tmp_path: Path, content: bytes) -> None:
        file = tmp_path / "lib.so"
        file.write_bytes(content)
        assert system_info.build_id(str(file)) is None

    @pytest.mark.parametrize(("at", "number"), [(32, 1 << 62), (8, (1 << 64) - 1)], ids=["length", "offset"])
    def test_of_a_damaged_file_is_none(self, tmp_path: Path, at: int, number: int) -> None:
        file = tmp_path / "lib.so"
        whole = bytearray(elf((b"GNU", 3, ID)))
        whole[64 + 56 + at : 64 + 56 + at + 8] = struct.pack("<Q", number)  # more than anything can hold
        file.write_bytes(whole)
        assert system_info.build_id(str(file)) in (None, ID.hex())

    def test_of_a_missing_file_is_none(self) -> None:
        assert system_info.build_id("/no/such/file.so") is None

    @pytest.mark.skipif(not shutil.which("readelf"), reason="needs readelf of binutils to compare with")
    def test_is_what_readelf_says(self) -> None:
        checked = 0
        for library in system_info.loaded_libraries()[:40]:
            said = run_command(["readelf", "-n", str(library["path"])])
            found = re.search(r"Build ID: ([0-9a-f]+)", said.stdout)
            assert library["build_id"] == (found.group(1) if found else None), library["path"]
            checked += found is not None
        assert checked >= 3


class TestLoadedLibraries:
    def test_are_the_shared_objects_of_this_process_once_each(self) -> None:
        assert numpy.__version__
        paths = [str(library["path"]) for library in system_info.loaded_libraries()]
        assert len(paths) == len(set(paths)) and paths == sorted(paths)
        assert any("libc.so" in path for path in paths)
        assert any("numpy" in path for path in paths)
        assert all(path.startswith("/") for path in paths)

    def test_tell_the_build_id_of_what_is_loaded_and_not_of_the_file(self, tmp_path: Path) -> None:
        loaded = next(it for it in system_info.loaded_libraries() if "libc.so" in str(it["path"]) and it["build_id"])
        file = tmp_path / "copy.so"
        shutil.copy(str(loaded["path"]), file)
        with file.open("r+b") as content, mmap.mmap(content.fileno(), 0, access=mmap.ACCESS_READ):
            file.unlink()
            (ours,) = (it for it in system_info.loaded_libraries() if str(file) in str(it["path"]))
        assert ours["build_id"] == loaded["build_id"]

    def test_take_the_build_id_from_the_file_where_memory_does_not_tell(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file = tmp_path / "lib.so"
        file.write_bytes(elf((b"GNU", 3, ID)))
        mapped = f"10-20 r--p 00000000 00:00 1 {file}"  # where nothing of this process lies
        monkeypatch.setattr(system_info, "read", lambda path: mapped)
        assert system_info.loaded_libraries() == [{"path": str(file), "build_id": ID.hex()}]


class TestRankFacts:
    def test_say_where_it_runs(self) -> None:
        said = system_info.rank_facts(3, 1)
        assert (said["rank"], said["local_rank"], said["pid"]) == (3, 1, os.getpid())
        assert said["affinity"] == sorted(os.sched_getaffinity(0))


class TestNodeFacts:
    def test_are_json_and_say_what_changes_timings(self) -> None:
        said = json.loads(json.dumps(system_info.node_facts()))
        assert said["cores_online"] == os.cpu_count()
        assert said["kernel"].startswith("Linux ")
        assert said["memory_kb"] > 1000
        assert "lo" not in said["network"]
        assert all(set(interface) == {"mtu", "speed_mbit"} for interface in said["network"].values())
        assert {"governor", "turbo_off", "smt", "clocksource", "huge_pages", "aslr", "load_before"} <= set(said)

    def test_a_machine_without_sys_and_proc_has_fewer(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setattr(system_info, "_ROOT", str(tmp_path))
        said = system_info.node_facts()
        assert said["network"] == {} and said["memory_kb"] is None and said["infiniband"] == [] and said["cpu"] == {}

    def test_interfaces_of_hardware_are_listed_and_those_of_containers_are_not(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        for name in ("eth0", "veth12ab", "lo"):
            (tmp_path / "sys/class/net" / name).mkdir(parents=True)
        (tmp_path / "sys/class/net/eth0/device").mkdir()
        monkeypatch.setattr(system_info, "_ROOT", str(tmp_path))
        assert list(system_info._network()) == ["eth0"]

    def test_infiniband_ports_are_listed(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        port = tmp_path / "sys/class/infiniband/mlx5_0/ports/1"
        port.mkdir(parents=True)
        (port / "rate").write_text("400 Gb/sec (4X NDR)\n")
        (port / "state").write_text("4: ACTIVE\n")
        (port.parent.parent / "hca_type").write_text("MT4129\n")
        monkeypatch.setattr(system_info, "_ROOT", str(tmp_path))
        (found,) = system_info.node_facts()["infiniband"]
        assert (found["device"], found["port"], found["model"]) == ("mlx5_0", "1", "MT4129")
        assert (found["rate"], found["state"], found["firmware"]) == ("400 Gb/sec (4X NDR)", "4: ACTIVE", None)


class TestSoftware:
    def test_lists_what_is_installed_and_only_that(self) -> None:
        said = system_info.software({"library": "mock 1.0"})
        assert said["python"] == sys.version.split()[0]
        assert said["packages"]["numpy"] == numpy.__version__
        assert said["library"] == "mock 1.0"
        assert all(isinstance(text, str) and text for text in said["packages"].values())


class TestRead:
    def test_strips_the_line_end(self, tmp_path: Path) -> None:
        (tmp_path / "x").write_text("performance\n")
        assert system_info.read(str(tmp_path / "x")) == "performance"

    def test_is_none_for_what_cannot_be_read(self, tmp_path: Path) -> None:
        assert system_info.read(str(tmp_path / "no")) is None
        assert system_info.read(str(tmp_path)) is None

    def test_bears_any_bytes(self, tmp_path: Path) -> None:
        (tmp_path / "x").write_bytes(b"ab\xff\n")
        assert (system_info.read(str(tmp_path / "x")) or "").startswith("ab")
