"""How commands are written."""

from __future__ import annotations

from pathlib import Path

import pytest

from omb_py.errors import UsageError
from omb_py.orchestrate.launching.launch_command import HERE
from omb_py.orchestrate.programs.command import SideProgram, parse_commands


def test_a_command_with_a_side_is_of_that_side() -> None:
    assert parse_commands(["BASE: old/app -n 1", "new: new/app"]) == {"BASE": "old/app -n 1", "NEW": "new/app"}


def test_a_command_without_a_side_is_of_both() -> None:
    assert parse_commands(["./app -x host:80"]) == {"BASE": "./app -x host:80", "NEW": "./app -x host:80"}


@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        (["NEW: app"], "--run NEW needs its other side: --run 'BASE: COMMAND'"),
        (["NEW: app", "NEW: app2"], "--run NEW is given twice"),
        (
            ["BASE: app", "other"],
            "--run BASE is given twice, 'app' and 'other': a command without a side is that of both",
        ),
        (["BAES: app", "NEW: app"], "a side is BASE or NEW: did you mean BASE?"),
        (["BASE: ", "NEW: app"], "needs a command"),
        (["BASE: app 'x", "NEW: app"], "no closing quotation"),
    ],
)
def test_other_commands_are_refused(texts: list[str], reason: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_commands(texts)
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("command", "ranks"),
    [
        ("mpirun -n 4 ./osu_latency", 4),
        ("/opt/mpi/bin/mpiexec --bind-to core -np 16 ./osu_latency -n 3", 16),
        ("srun --ntasks=8 all_reduce_perf", 8),
        ("srun -c 4 -n 2 ./osu_latency", 2),
        ("torchrun --nproc-per-node 2 script.py", 2),
        ("./app -n 5", None),
    ],
)
def test_the_ranks_that_a_launcher_is_asked_for(command: str, ranks: int | None) -> None:
    assert SideProgram("NEW", command, HERE).asked_ranks == ranks


def test_a_shell_gets_what_only_a_shell_understands() -> None:
    assert SideProgram("NEW", "app 'a b'", HERE).argv() == ["app", "a b"]
    assert SideProgram("NEW", "cd x && app", HERE).argv() == ["/bin/sh", "-c", "cd x && app"]
    assert SideProgram("NEW", "A=1 app", HERE).argv() == ["/bin/sh", "-c", "A=1 app"]


def test_the_file_that_is_written_has_a_name_of_its_own() -> None:
    assert SideProgram("NEW", "app -o {out}", HERE).argv(Path("/tmp/a b")) == ["app", "-o", "/tmp/a b"]


def test_a_program_that_is_not_there_is_refused_with_its_neighbour(tmp_path: Path) -> None:
    (tmp_path / "osu_latency").write_text("#!/bin/sh\n")
    (tmp_path / "results").mkdir()
    with pytest.raises(UsageError, match=f"it is not executable: chmod \\+x {tmp_path}/osu_latency$"):
        SideProgram("NEW", f"{tmp_path}/osu_latency", HERE).check()
    with pytest.raises(UsageError, match=r"can be started: give its path$"):
        SideProgram("NEW", f"{tmp_path}/osu_latencyy", HERE).check()
    with pytest.raises(UsageError, match="give its path"):
        SideProgram("NEW", "no-such-program", HERE).check()
    (tmp_path / "osu_latency").chmod(0o755)
    with pytest.raises(UsageError, match="did you mean osu_latency"):
        SideProgram("NEW", f"{tmp_path}/osu_latencyy", HERE).check()
    with pytest.raises(UsageError, match=r"can be started: valid: osu_latency$"):
        SideProgram("NEW", f"{tmp_path}/other", HERE).check()
    SideProgram("NEW", f"{tmp_path}/osu_latency", HERE).check()
