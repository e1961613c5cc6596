from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import omb_py
from omb_py.distribution import checkout
from omb_py.errors import EnvironmentProblem, UsageError
from omb_py.orchestrate.compare.side_environments import SideSpec, parse_sides, where_of
from omb_py.orchestrate.launching.launch_command import HERE, RankEnvironment, machine_of

MODULES = {
    # as Environment Modules and Lmod export it
    "BASH_FUNC_module%%": '() { case "$2" in good/1) export MPI_HOME=/opt/good; unset DROPPED;; '
    'quiet/1) echo "ERROR: no such module $2" >&2;; *) echo "no such module $2" >&2; return 1;; esac; }',
    "DROPPED": "x",
}


def environment(folder: Path, script: str) -> Path:
    """Something that looks like a virtual environment, whose Python is a shell script."""
    python = folder / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)
    return folder


def test_reads_what_each_side_says() -> None:
    found = parse_sides(
        ["base=/a", "NEW=/b"], ["NEW=openmpi/5", "NEW=ucx"], ["NEW:UCX_TLS=tcp,self", "BASE:X="], ["NEW:binding=mpi4py"]
    )
    assert found["BASE"] == SideSpec("/a", [], {"X": ""}, [])
    assert found["NEW"] == SideSpec("/b", ["openmpi/5", "ucx"], {"UCX_TLS": "tcp,self"}, ["--binding=mpi4py"])
    assert found["NEW"].describe() == "/b openmpi/5 ucx UCX_TLS=tcp,self --binding=mpi4py"


def test_one_environment_a_side() -> None:
    with pytest.raises(UsageError, match="--env BASE is given twice: a and b"):
        parse_sides(["BASE=a", "BASE=b"])


def test_nothing_said_is_here() -> None:
    assert where_of("BASE", SideSpec()) is HERE
    assert machine_of(HERE, {"MORE": "1"}).environ == {**os.environ, "MORE": "1"}


def test_variables_are_set_for_the_ranks_alone() -> None:
    where = where_of("NEW", SideSpec(variables={"UCX_TLS": "tcp"}), {"HOME": "/h"})
    assert where.python == sys.executable
    assert where.environment({"HOME": "/h"}) == {"HOME": "/h", "UCX_TLS": "tcp"}
    assert where.names == ("UCX_TLS",)
    assert where.facts == {"config": {"side": "NEW", "set": {"UCX_TLS": "tcp"}}}
    assert "UCX_TLS" not in os.environ
    context = machine_of(where, {})
    assert context is not None and context.environ["UCX_TLS"] == "tcp"


def test_an_environment_has_its_python_its_path_and_this_code(tmp_path: Path) -> None:
    v1 = environment(tmp_path / "v1", f"echo omb-py {omb_py.__version__}")
    for text in (str(v1), str(v1 / "bin" / "python")):
        where = where_of("NEW", SideSpec(env=text), {"PATH": "/bin", "PYTHONHOME": "/x"})
        told = where.environment({"PATH": "/bin", "PYTHONHOME": "/x"})
        assert where.python == str(v1 / "bin" / "python")
        assert told["PATH"] == f"{v1 / 'bin'}:/bin" and told["VIRTUAL_ENV"] == str(v1)
        assert "PYTHONHOME" not in told
        assert told.get("PYTHONPATH") == checkout()


def test_an_environment_that_is_none(tmp_path: Path) -> None:
    environment(tmp_path / "mpich", "")
    with pytest.raises(UsageError, match=r"--env NEW=.*/mpch: no Python at .*: did you mean mpich\?"):
        where_of("NEW", SideSpec(env=str(tmp_path / "mpch")))


def test_an_environment_without_omb_py_or_with_another(tmp_path: Path) -> None:
    bare = environment(tmp_path / "bare", "echo 'ModuleNotFoundError: No module named omb_py' >&2; exit 1")
    with pytest.raises(EnvironmentProblem, match=r"omb-py cannot be loaded: .*No module.*: .*/bare/bin/python -m pip"):
        where_of("BASE", SideSpec(env=str(bare)))
    old = environment(tmp_path / "old", "echo omb-py 0.0.1")
    with pytest.raises(EnvironmentProblem, match=r"it has omb-py 0.0.1, this is .*pip install omb-bench=="):
        where_of("BASE", SideSpec(env=str(old)))


def test_a_module_changes_the_environment_of_its_side() -> None:
    ours = {**os.environ, **MODULES}
    where = where_of("NEW", SideSpec(modules=["good/1"]), ours)
    told = where.environment(ours)
    assert told["MPI_HOME"] == "/opt/good" and "DROPPED" not in told
    assert where.facts["config"]["modules"] == ["good/1"]


@pytest.mark.parametrize("name", ["nosuch/1", "quiet/1"])
def test_a_module_that_is_not_there(name: str) -> None:
    with pytest.raises(EnvironmentProblem, match=f"--module NEW={name}: cannot be loaded: .*no such module {name}"):
        where_of("NEW", SideSpec(modules=[name]), {**os.environ, **MODULES})


@pytest.mark.parametrize(("name", "in_order"), [("nosuch/1", ("good/1", "{}")), ("quiet/1", ("{}", "good/1"))])
def test_of_two_modules_one_that_is_not_there_is_named(name: str, in_order: tuple[str, str]) -> None:
    """A side that has only some of its modules would measure something that nobody asked for."""
    modules = [text.format(name) for text in in_order]
    with pytest.raises(EnvironmentProblem, match=f"--module NEW={name}: cannot be loaded: .*no such module {name}"):
        where_of("NEW", SideSpec(modules=modules), {**os.environ, **MODULES})


def test_a_module_that_hides_all_programs_is_loaded() -> None:
    ours = {**os.environ, "BASH_FUNC_module%%": "() { export PATH=/none; }"}
    where = where_of("NEW", SideSpec(modules=["narrow/1"]), ours)
    assert where.environment(ours)["PATH"] == "/none"


def test_a_module_that_ends_the_shell_is_one_line() -> None:
    ours = {**os.environ, "BASH_FUNC_module%%": "() { exit 5; }"}
    with pytest.raises(EnvironmentProblem, match="--module NEW=x: cannot be loaded: exit status 5: see module avail"):
        where_of("NEW", SideSpec(modules=["x"]), ours)


def test_no_modules_here() -> None:
    ours = {k: v for k, v in os.environ.items() if "module" not in k.lower()}
    with pytest.raises(EnvironmentProblem, match="this machine has no command 'module': use --env"):
        where_of("NEW", SideSpec(modules=["x"]), ours)


def test_where_is_plain_data() -> None:
    assert (
        RankEnvironment().environment({"A": "1"}) == {"A": "1"}
        and RankEnvironment(variables={"A": None}).environment({"A": "1"}) == {}
    )
