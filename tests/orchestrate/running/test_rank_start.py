"""How a rank finds modules: by the parent's word, from one file, and by ``site`` only where nothing else helps."""

from __future__ import annotations

import colorsys
import json
import os
import sys
from pathlib import Path

import pytest

from omb_py.orchestrate.running import rank_start
from omb_py.orchestrate.running.rank_modules import keep_modules, question_of, rank_variables
from tests.support.machines.mpi import run_command

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
    done = run_command([sys.executable, "-S", "-P", "-c", code], env=environ)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return json.loads(done.stdout)


def test_prefix_and_path_are_the_parents() -> None:
    prefix, path = printed("print(json.dumps([sys.prefix, sys.path]))")
    assert prefix == sys.prefix and set(filter(None, sys.path)) <= set(path)


def test_modules_of_another_path_are_not_taken(tmp_path: Path) -> None:
    """A PYTHONPATH with an mpi4py of another library would otherwise measure the library of before."""
    ask = "from omb_py.orchestrate.running.rank_modules import question_of; print(question_of('test'))"
    root = str(Path(rank_start.__file__).parents[3])
    answers = {
        run_command([sys.executable, "-c", ask], cwd=cwd, check=True, PYTHONPATH=os.pathsep.join([*more, root])).stdout
        for cwd, more in ((tmp_path.parent, []), (tmp_path, []), (tmp_path, [str(tmp_path / "other")]))
    }
    assert len(answers) == 2  # the folder of the call makes no difference


def test_a_command_begins_in_a_folder_that_was_removed(tmp_path: Path) -> None:
    folder = tmp_path / "removed"
    folder.mkdir()
    code = f"import os; os.rmdir({str(folder)!r}); from omb_py.cli import main; main(['--version'])"
    environ = {**os.environ, "PYTHONPATH": str(Path(rank_start.__file__).parents[3])}
    done = run_command([sys.executable, "-c", code], cwd=folder, env=environ)
    assert done.returncode == 0 and done.stdout.startswith("omb-py"), done.stderr


def test_mpi4py_finds_the_parents_library() -> None:
    where = "import mpi4py._mpiabi as m; print(json.dumps(m._dlopen_rpath()))"
    here = run_command([sys.executable, "-c", f"import json; {where}"], env=os.environ).stdout
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
    assert printed(loader) == "KeptLoader"
    (file,) = cache.glob("*.modules")
    file.chmod(0o622)
    assert printed(loader, OMB_PY_MODULES=file.name) == "SourceFileLoader"
    file.unlink()
    assert rank_start.MODULES_VARIABLE not in rank_variables(question_of("test"))


COMMAND = """
import sys
from omb_py.cli import main
code = main()
print(type(sys.modules["omb_py.suites.registry"].__loader__).__name__, "pandas" in sys.modules)
sys.exit(code)
"""


def loader_of_command(*words: str) -> str:
    """How a command found its modules."""
    done = run_command([sys.executable, "-c", COMMAND, *words], env=os.environ)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


@pytest.mark.slow
def test_a_command_finds_its_modules_in_one_file_once_one_has_measured(cache: Path, tmp_path: Path) -> None:
    measure = ("latency", "--backend", "mock", "-m", "8:8", "-i", "5")
    assert loader_of_command("list") == "SourceFileLoader False"
    assert not list(cache.glob("*.modules"))
    assert loader_of_command(*measure, "--store", str(tmp_path / "store")) == "SourceFileLoader False"
    (file,) = cache.glob("*.modules")
    assert b"omb_py.suites.registry" in file.read_bytes() and b"/pandas/" not in file.read_bytes()
    assert loader_of_command("list") == "KeptLoader False"
    assert loader_of_command(*measure, "-c", "--no-store") == "KeptLoader False"
    file.write_bytes(file.read_bytes()[:-1])
    assert loader_of_command(*measure, "--no-store") == "SourceFileLoader False"
    assert loader_of_command("list") == "KeptLoader False"


def test_a_kept_module_is_to_others_as_from_its_source(cache: Path) -> None:
    keep_modules(question_of("test"), ["colorsys", "json", "json.decoder"])
    seen = printed(
        "import colorsys, inspect, importlib.resources, json as j\n"
        "source = inspect.getsource(colorsys.rgb_to_yiq)\n"
        "files = importlib.resources.files(j).joinpath('decoder.py').is_file()\n"
        "print(json.dumps([colorsys.__file__, source[:15], files, type(colorsys.__loader__).__name__]))"
    )
    assert seen == [colorsys.__file__, "def rgb_to_yiq(", True, "KeptLoader"]


def test_modules_of_ranks_compile_no_names_of_types() -> None:
    """The first text that Python compiles for ``typing`` takes a millisecond of every rank."""
    seen = printed(
        "import builtins\n"
        "real, texts = compile, []\n"
        "def noted(source, file, mode, *more, **named):\n"
        "    texts.extend([source] if mode == 'eval' else [])\n"
        "    return real(source, file, mode, *more, **named)\n"
        "builtins.compile = noted\n"
        "import omb_py.backends.mpi.session, omb_py.engine.measuring.measure, omb_py.orchestrate.running.rank_process\n"
        "import omb_py.suites.pt2pt.two_ranks, omb_py.engine.native.translate\n"
        "print(json.dumps(texts))"
    )
    assert seen == []
