"""A library that was to be exchanged and was not."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from omb_py.errors import NoVerdict, UsageError
from omb_py.orchestrate.launching.launch_command import RankEnvironment
from omb_py.orchestrate.programs.command import SideProgram
from omb_py.orchestrate.programs.exchanged import ExpectedLibrary, parse_expected, why_not_exchanged
from omb_py.orchestrate.programs.mapped_files import MappedFile
from omb_py.orchestrate.programs.session import compare_programs
from omb_py.results.compare.match import Side
from tests.orchestrate.programs.conftest import Make

OLD = MappedFile("/usr/lib/libmpi.so.40.30.1", "aa")
APP = MappedFile("/home/me/app", "11")


def programs(new: Mapping[str, str], base: str = "app", other: str = "app") -> dict[Side, SideProgram]:
    return {
        "BASE": SideProgram("BASE", base, RankEnvironment(variables={"LD_LIBRARY_PATH": None})),
        "NEW": SideProgram("NEW", other, RankEnvironment(variables={"LD_LIBRARY_PATH": None, **new})),
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "libmpi.so.40.40.0").write_text("new")
    (tmp_path / "libmpi.so.40").symlink_to("libmpi.so.40.40.0")
    return tmp_path


def test_a_library_that_was_exchanged_is_fine(folder: Path) -> None:
    new = MappedFile(str(folder / "libmpi.so.40.40.0"), "bb")
    sides = programs({"LD_LIBRARY_PATH": str(folder)})
    assert why_not_exchanged(sides, {"BASE": {APP, OLD}, "NEW": {APP, new}}) == ""


def test_a_library_that_was_loaded_from_elsewhere_is_named(folder: Path) -> None:
    sides = programs({"LD_LIBRARY_PATH": str(folder)})
    why = why_not_exchanged(sides, {"BASE": {APP, OLD}, "NEW": {APP, OLD}})
    assert why == f"NEW was to load libmpi.so.40.30.1 from {folder} and ran with {OLD}"


def test_a_folder_of_which_nothing_was_loaded_is_named(tmp_path: Path) -> None:
    (tmp_path / "libother.so").touch()
    why = why_not_exchanged(programs({"LD_LIBRARY_PATH": str(tmp_path)}), {"BASE": {APP}, "NEW": {APP}})
    assert why == f"NEW was to load libraries from {tmp_path} and loaded none from there"


def test_another_copy_of_the_same_build_is_no_exchange(folder: Path) -> None:
    copied = MappedFile(str(folder / "libmpi.so.40.40.0"), "aa")
    sides = programs({"LD_LIBRARY_PATH": str(folder)})
    why = why_not_exchanged(sides, {"BASE": {APP, OLD}, "NEW": {APP, copied}})
    assert why.startswith("both sides ran the same build of libmpi.so.40.40.0")


def test_a_module_needs_one_of_its_libraries(folder: Path) -> None:
    (folder / "libz.so.1").touch()
    new, other = MappedFile(str(folder / "libmpi.so.40.40.0"), "bb"), MappedFile("/usr/lib/libz.so.1.3", "cc")
    sides = programs({"LD_LIBRARY_PATH": str(folder)})
    seen: dict[Side, set[MappedFile]] = {"BASE": {APP, OLD, other}, "NEW": {APP, new, other}}
    assert "was to load libz.so.1.3 from" in why_not_exchanged(sides, seen)
    where = RankEnvironment(variables=sides["NEW"].where.variables, facts={"config": {"modules": ["openmpi"]}})
    assert why_not_exchanged({**sides, "NEW": SideProgram("NEW", "app", where)}, seen) == ""


def test_a_program_that_does_not_load_the_library_of_its_environment_is_named(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libmpi.so.12").touch()
    sides = programs({"VIRTUAL_ENV": str(tmp_path)})
    assert f"from {tmp_path}/lib and ran with {OLD}" in why_not_exchanged(sides, {"BASE": {OLD}, "NEW": {OLD}})
    assert why_not_exchanged(sides, {"BASE": {APP}, "NEW": {APP}}) == ""


def test_a_program_that_ended_before_it_was_seen_is_no_exchange(folder: Path) -> None:
    why = why_not_exchanged(programs({"LD_LIBRARY_PATH": str(folder)}), {"BASE": set(), "NEW": set()})
    assert "ended too soon" in why


def test_two_copies_of_one_program_are_no_two_programs(tmp_path: Path) -> None:
    for side in ("old", "new"):
        (tmp_path / side).mkdir()
        (tmp_path / side / "app").write_text("#!/bin/sh\n")
        (tmp_path / side / "app").chmod(0o755)
    sides = programs({}, f"{tmp_path}/old/app", f"{tmp_path}/new/app")
    assert "have the same content" in why_not_exchanged(sides, {"BASE": {APP}, "NEW": {APP}})
    (tmp_path / "new" / "libown.so").write_text("a library that the program finds beside itself")
    assert why_not_exchanged(sides, {"BASE": {APP}, "NEW": {APP}}) == ""


def test_an_expected_library(tmp_path: Path) -> None:
    (tmp_path / "libmpi.so.40").touch()
    (expected,) = parse_expected([f"new:libmpi.so={tmp_path}"])
    assert expected == ExpectedLibrary("NEW", "libmpi.so", tmp_path)
    assert expected.why_not({MappedFile(str(tmp_path / "libmpi.so.40"), "bb")}) == ""
    assert str(OLD) in expected.why_not({OLD})
    assert "not seen to load any libmpi.so" in expected.why_not({APP})


@pytest.mark.parametrize("text", ["libmpi.so=/tmp", "NEW:=/tmp", "OLD:libmpi.so=/tmp", "NEW:libmpi.so"])
def test_an_expectation_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="takes SIDE:NAME=PATH"):
        parse_expected([text])


def test_an_expected_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no"):
        parse_expected([f"NEW:libmpi.so={tmp_path}/nowhere"])


@pytest.mark.slow
def test_a_real_process_that_did_not_load_the_library_gets_no_verdict(
    design: Make, osu: Callable[..., str], tmp_path: Path
) -> None:
    maps = Path("/proc/self/maps").read_text().splitlines()
    libc = next(line.split()[-1] for line in maps if "libc.so" in line or "libc-" in line)
    shutil.copy(libc, tmp_path / Path(libc).name)
    # a shell that lives on after the program has printed, so that its files are seen
    command = f"sh -c '{osu(1)}; sleep 0.5'"
    settings = {"NEW": {"LD_LIBRARY_PATH": str(tmp_path)}}
    with pytest.raises(NoVerdict, match=r"both sides ran the same build of libc"):
        compare_programs(design(command, command, settings))
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(NoVerdict, match="loaded none from there"):
        compare_programs(design(command, command, {"NEW": {"LD_LIBRARY_PATH": str(empty)}}))
    expected = parse_expected([f"NEW:libc.so={empty}"])
    with pytest.raises(NoVerdict, match=r"NEW was to load libc.so from .*empty and ran with"):
        compare_programs(design(command, f"sh -c '{osu(1.1)}; sleep 0.5'", expected=expected))
