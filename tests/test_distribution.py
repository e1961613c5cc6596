"""What is to be typed for a missing part installs this project, not the one that holds the command's name on PyPI."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import omb_py
from omb_py import distribution
from omb_py.distribution import DISTRIBUTION, pip_install, version_line
from tests.support.oldest_versions import oldest_versions

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
STRANGER = re.compile(r"omb-py(\[|==|>=|~=)|install (-\S+ )*['\"]?omb-py\b|dependencies = \[[^]\n]*\"omb-py\"")


@pytest.mark.slow
def test_no_text_installs_the_stranger() -> None:
    folders = "omb_py backends suites results dashboards tests docs .ci".split()
    files = [path for folder in folders for path in (ROOT / folder).rglob("*")] + list(ROOT.glob("*.*"))
    texts = {path: path.read_text("utf-8", "replace") for path in files if path.is_file() and path.suffix != ".pyc"}
    del texts[Path(__file__).resolve()]
    assert len(texts) > 500
    assert [path for path, text in texts.items() if STRANGER.search(text)] == []
    assert STRANGER.search("pip install 'omb-py[mpich]'") and STRANGER.search("pip install --user omb-py")
    assert STRANGER.search('dependencies = ["numpy", "omb-py"]')
    assert not STRANGER.search(pip_install("mpich"))


def test_the_project_has_that_name_and_those_extras() -> None:
    assert PROJECT["name"] == DISTRIBUTION
    assert PROJECT["scripts"] == {"omb-py": "omb_py.__main__:main"}


def test_a_checkout_installs_itself(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(ROOT)
    assert pip_install("gloo") == "pip install -e '.[gloo]'"
    monkeypatch.chdir(tmp_path)
    assert pip_install("gloo") == f"pip install -e '{ROOT}[gloo]'"


def test_an_installed_package_comes_from_the_index(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(distribution, "_ROOT", str(tmp_path))
    assert pip_install("gloo") == "pip install 'omb-bench[gloo]'"


def test_every_extra_that_a_hint_names_is_declared() -> None:
    names = set()
    for folder in ("omb_py", "backends", "dashboards", "results", "suites"):
        for path in (ROOT / folder).rglob("*.py"):
            names |= set(re.findall(r"pip_install\(['\"](\w+)['\"]\)", path.read_text(encoding="utf-8")))
    assert names and names <= set(PROJECT["optional-dependencies"])


def test_every_dependency_has_a_lower_bound_that_can_be_tried() -> None:
    pinned = oldest_versions(PROJECT["dependencies"])
    assert len(pinned) == len(PROJECT["dependencies"])
    assert all(re.fullmatch(r"[\w-]+==\d[\d.]*", text) for text in pinned), pinned
    with pytest.raises(ValueError, match="no lower bound"):
        oldest_versions(["numpy"])


SHA = "0123456789abcdef" * 2 + "01234567"


@pytest.mark.parametrize("kind", ["loose", "packed", "detached", "worktree"])
def test_the_commit_of_a_checkout_is_read_as_git_lays_it_out(kind: str, tmp_path: Path) -> None:
    git = tmp_path / ".git"
    git.mkdir()
    (git / "HEAD").write_text(f"{SHA}\n" if kind == "detached" else "ref: refs/heads/main\n")
    if kind in ("loose", "worktree"):
        (git / "refs" / "heads").mkdir(parents=True)
        (git / "refs" / "heads" / "main").write_text(f"{SHA}\n")
    (git / "packed-refs").write_text(f"# pack-refs with: peeled\n{SHA[::-1]} refs/heads/other\n{SHA} refs/heads/main\n")
    if kind == "worktree":
        own = git / "worktrees" / "w"
        own.mkdir(parents=True)
        (own / "HEAD").write_text("ref: refs/heads/main\n")
        (own / "commondir").write_text("../..\n")
        (tmp_path / "w").mkdir()
        git = tmp_path / "w" / ".git"
        git.write_text(f"gitdir: {own}\n")
    assert distribution._read_checkout(git) == SHA


def test_the_version_says_the_commit_where_one_is_known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(distribution, "commit", lambda: SHA)
    assert version_line() == f"omb-py {omb_py.__version__} (commit 012345678)"
    monkeypatch.setattr(distribution, "commit", lambda: "")
    assert version_line() == f"omb-py {omb_py.__version__}"
    assert distribution._read_checkout(tmp_path / ".git") == ""
