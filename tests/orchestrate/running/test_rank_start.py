"""How a rank finds modules: by the parent's word, from one file, and by ``site`` only where nothing else helps."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from omb_py.orchestrate.running import rank_start
from omb_py.orchestrate.running.rank_modules import keep_modules, question_of, rank_variables

SHOW = """
import json, sys
sys.path.insert(0, {folder!r})
import rank_start, os
rank_start.find_modules(os.environ)
{then}
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "omb-py"


def printed(then: str, **variables: str) -> object:
    """What a rank's Python prints as JSON after it has found modules."""
    code = SHOW.format(folder=os.path.dirname(rank_start.__file__), then=then)
    environ = {**os.environ, **rank_variables(question_of("test")), **variables}
    done = subprocess.run([sys.executable, "-S", "-P", "-c", code], capture_output=True, text=True, env=environ)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return json.loads(done.stdout)


def test_prefix_and_path_are_the_parents() -> None:
    prefix, path = printed("print(json.dumps([sys.prefix, sys.path]))")
    assert prefix == sys.prefix and set(filter(None, sys.path)) <= set(path)


def test_mpi4py_finds_the_parents_library() -> None:
    where = "import mpi4py._mpiabi as m; print(json.dumps(m._dlopen_rpath()))"
    here = subprocess.run([sys.executable, "-c", f"import json; {where}"], capture_output=True, text=True).stdout
    assert printed(where) == json.loads(here)


def test_site_is_read_for_packages_that_are_found_by_it_alone_and_not_for_names_of_python() -> None:
    tries = (
        "seen = []\n"
        "for name in ('_winapi', 'org', 'no_such_package'):\n"
        "    try:\n        __import__(name)\n"
        "    except ImportError:\n"
        "        seen.append(any(type(f).__name__ == 'SiteFinder' for f in sys.meta_path))\n"
        "print(json.dumps(seen))"
    )
    assert printed(tries) == [True, True, False]


def test_modules_come_from_the_file_until_a_source_changes(cache: Path, tmp_path: Path) -> None:
    loader = "import colorsys; print(json.dumps(type(colorsys.__spec__.loader).__name__))"
    assert printed(loader) == "SourceFileLoader"
    keep_modules(question_of("test"), ["colorsys", "json", "__main__", "no_such_package.at_all", "numpy"])
    assert printed(loader) == "ModulesOfRank"
    (file,) = cache.glob("*.modules")
    file.chmod(0o622)
    assert printed(loader, OMB_PY_MODULES=file.name) == "SourceFileLoader"
    file.unlink()
    assert rank_start.MODULES_VARIABLE not in rank_variables(question_of("test"))
