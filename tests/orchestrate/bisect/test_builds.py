"""A build is made once, in a work tree of its commit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from omb_py.errors import LaunchFailed
from omb_py.orchestrate.bisect.builds import Builds
from omb_py.orchestrate.bisect.commits import find_commit

Make = Callable[..., Builds]
Repository = Callable[..., Path]


@pytest.mark.slow
def test_a_commit_is_built_once_in_its_own_tree(repository: Repository, builds: Make) -> None:
    notes: list[str] = []
    folder = repository(3, {0: 1.0, 2: 2.0})
    made = builds(folder, "cat cost >> {build}/built", notes)
    for _ in range(2):
        assert [(made.of(find_commit(folder, tag)) / "built").read_text() for tag in ("c1", "c2")] == ["1.0", "2.0"]
    assert len(notes) == 2
    assert made.of(find_commit(folder, "c1")) != builds(folder, "true", notes).of(find_commit(folder, "c1"))


def test_a_build_that_failed_is_made_again(repository: Repository, builds: Make, tmp_path: Path) -> None:
    folder = repository(1, {0: 1.0})
    made = builds(folder, f"echo no compiler >&2; test -e {tmp_path}/compiler", [])
    commit = find_commit(folder, "c0")
    with pytest.raises(LaunchFailed, match=r"it ended with exit code 1: no compiler; its output: .*\.log") as error:
        made.of(commit)
    assert Path(str(error.value).rpartition("its output: ")[2]).read_text() == "no compiler\n"
    (tmp_path / "compiler").touch()
    assert made.of(commit).is_dir()
