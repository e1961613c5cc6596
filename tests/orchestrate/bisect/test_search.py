"""The commit is named, with how sure that is; what cannot be built or told is passed over, and said."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from omb_py.errors import INCONCLUSIVE, OK, Interrupted, LaunchFailed, NoVerdict, UsageError
from omb_py.orchestrate.bisect import search
from omb_py.orchestrate.bisect.report import bisect_document
from omb_py.orchestrate.bisect.search import BisectDesign, bisect
from omb_py.printing.writers.markdown import to_markdown
from omb_py.results.store.read import load

Make = Callable[..., BisectDesign]
Repository = Callable[..., Path]


@pytest.mark.slow
def test_the_commit_that_made_it_slower_is_named(repository: Repository, design: Make, tmp_path: Path) -> None:
    notes: list[str] = []
    found = bisect(design(repository(6, {0: 1.0, 4: 1.08}), "c0", "c5", notes))
    assert [commit.subject for commit in found.possible] == ["change 4"]
    assert {(tried.commit.subject, tried.verdict) for tried in found.tried} >= {
        ("change 3", "SAME"),
        ("change 4", "SLOWER"),
    }
    assert 0.9 < found.certainty < 1
    document = bisect_document(found)
    assert document.exit_code == OK and document.headline == f"{found.possible[0]} made it slower"
    text = to_markdown(document)
    assert "times as long as --good" in text and "| change 3 | SAME |" in text
    assert any("5 commits are possible: about 3 comparisons of 18 to 50 launches" in note for note in notes)
    frame = load(tmp_path / "store")
    assert found.possible[0].name in {dict(tags)["commit"] for tags in frame["tags"]}


@pytest.mark.slow
def test_a_commit_that_cannot_be_built_is_passed_over(repository: Repository, design: Make) -> None:
    found = bisect(design(repository(6, {0: 1.0, 3: 1.2}, broken=(3,)), "c0", "c5"))
    assert {commit.subject for commit in found.possible} == {"change 3", "change 4"}
    document = bisect_document(found)
    assert document.exit_code == INCONCLUSIVE and document.headline == "one of 2 commits made it slower"
    assert any("change 3" in line and "cannot be built" in line for line in document.problems)


@pytest.mark.slow
def test_ends_that_do_not_differ_are_no_verdict(repository: Repository, design: Make) -> None:
    with pytest.raises(NoVerdict, match=r"\(change 3\) is not found to be slower than .*\(change 0\)"):
        bisect(design(repository(4, {0: 1.0}), "c0", "c3"))


@pytest.mark.slow
def test_an_end_that_cannot_be_built_ends_the_search(repository: Repository, design: Make, tmp_path: Path) -> None:
    with pytest.raises(LaunchFailed, match=r"\(change 3\) cannot be built: it ended with exit code 1; its output: "):
        bisect(design(repository(4, {0: 1.0}, broken=(3,)), "c0", "c3"))
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize(
    ("good", "bad", "run", "says"),
    [
        ("c3", "c3", "{build}/a", "are one commit, .*: name an earlier one that is faster"),
        ("c3", "c0", "{build}/a", "--good c3 is no ancestor of --bad c0"),
        ("c9", "c0", "{build}/a", "--good c9: no such commit in .*: git log lists them"),
        ("c0", "c3", "./a", "nothing in --run './a' depends on the commit"),
    ],
)
def test_what_is_no_bisection_is_refused(
    repository: Repository, design: Make, tmp_path: Path, good: str, bad: str, run: str, says: str
) -> None:
    folder = repository(4, {0: 1.0})
    with pytest.raises(UsageError, match=says):
        bisect(design(folder, good, bad, run=run))
    assert not (tmp_path / "builds").exists()


def test_a_variable_without_a_value_is_refused_in_the_words_of_bisect(repository: Repository, design: Make) -> None:
    usual = design(repository(2, {0: 1.0}), "c0", "c1")
    with pytest.raises(UsageError, match=r"--set takes NAME=VALUE, as LD_LIBRARY_PATH=\{build\}/lib, not 'LIB'"):
        bisect(replace(usual, program=replace(usual.program, sets=("LIB",))))


def test_a_folder_without_a_repository_is_named(design: Make, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="it is no git repository"):
        design(tmp_path, "a", "b")


@pytest.mark.slow
def test_ctrl_c_between_two_comparisons_says_what_is_kept(
    repository: Repository, design: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forecast(*words: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(search, "_forecast", forecast)
    with pytest.raises(Interrupted, match=r"^interrupted: builds are kept in .*builds and launches in "):
        bisect(design(repository(3, {0: 1.0, 1: 1.2}), "c0", "c2"))
