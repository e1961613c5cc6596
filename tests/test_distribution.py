"""What is to be typed for a missing part installs this project, not the one that holds the command's name on PyPI."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from omb_py import distribution
from omb_py.distribution import DISTRIBUTION, pip_install
from tests.support.oldest_versions import oldest_versions

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
STRANGER = re.compile(r"omb-py(\[|==|>=|~=)|install (-\S+ )*['\"]?omb-py\b")


def test_no_text_installs_the_stranger() -> None:
    folders = "omb_py backends suites results dashboards tests docs .ci".split()
    files = [path for folder in folders for path in (ROOT / folder).rglob("*")] + list(ROOT.glob("*.*"))
    texts = {path: path.read_text("utf-8", "replace") for path in files if path.is_file() and path.suffix != ".pyc"}
    del texts[Path(__file__).resolve()]
    assert len(texts) > 500
    assert [path for path, text in texts.items() if STRANGER.search(text)] == []
    assert STRANGER.search("pip install 'omb-py[mpich]'") and STRANGER.search("pip install --user omb-py")
    assert not STRANGER.search(pip_install("mpich"))


def test_the_project_has_that_name_and_those_extras() -> None:
    assert PROJECT["name"] == DISTRIBUTION
    assert PROJECT["scripts"] == {"omb-py": "omb_py.cli:main"}


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
