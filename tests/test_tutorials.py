"""Every command and every Python block of docs/tutorials does what the page shows.

What ``console`` blocks and the ``text`` blocks after Python show is compared; ``sh`` blocks must run; ``bash`` blocks
need what not every machine has, as the network or a GPU. ``python -m tests.test_tutorials [PAGE…]`` writes what they
print now into the pages.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.golden.normal import Normal
from tests.golden.running import place
from tests.support.machines.mpi import environment, run_omb_py
from tests.support.optional import needs_torch

PAGES = Path(__file__).resolve().parent.parent / "docs" / "tutorials"
FENCE = re.compile(r"(?:`(?P<file>[\w/-]+\.\w+)`:\n\n)?```(?P<kind>\w+)\n(?P<text>.*?)```\n", re.S)
REAL = ("first-benchmark", "libraries")
"""Pages with real ranks: their numbers vary."""
QUICK = ("accept-a-cluster", "build", "upgrade")
"""Pages of verdicts: a change of the statistics must not leave them stale until the slow tests run."""
DISTURBED = re.compile(r"conditions: (busy machine|affinity|clock rates|hot machine): ")
"""What compare says of the machine on which the page is read."""
Shell = Callable[[list[str]], tuple[int, str]]


def _by_subprocess(words: list[str]) -> tuple[int, str]:
    path = os.pathsep.join((os.getcwd(), environment()["PYTHONPATH"]))
    done = run_omb_py(*words, COLUMNS="100", PYTHONPATH=path)
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, done.stdout


def made_anew(text: str, shell: Shell, root: Path) -> str:
    """A page with what its commands and its Python print now. Files that it shows are written as it shows them."""
    spaces: dict[str, object] = {"__name__": "__main__"}
    printed = ""

    def block(fence: re.Match[str]) -> str:
        nonlocal printed
        body = fence["text"]
        if fence["file"]:
            (root / fence["file"]).write_text(body, encoding="utf-8")
            if fence["file"] == "pyproject.toml":
                _install(body, root)
        elif fence["kind"] == "console":
            body = _typed(body, shell)
        elif fence["kind"] == "sh":
            _typed("".join(f"$ {line}\n" for line in body.splitlines() if line.startswith("omb-py ")), shell)
        elif fence["kind"] == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(body, "<page>", "exec"), spaces)
            printed = out.getvalue()
        elif fence["kind"] == "text":
            body = printed
        return fence[0].replace(f"```{fence['kind']}\n{fence['text']}", f"```{fence['kind']}\n{body}")

    return FENCE.sub(block, text)


def _typed(block: str, shell: Shell) -> str:
    lines, code = [], 0
    for command in re.findall(r"^\$ (.*)$", block, re.M):
        out = f"{code}\n"
        if command != "echo $?":
            program, *words = shlex.split(command)
            assert program == "omb-py", command
            code, out = shell(words)
        lines += [f"$ {command}", *(line.rstrip() for line in out.rstrip().splitlines() if not DISTURBED.match(line))]
    return "\n".join([*lines, ""])


def _install(pyproject: str, root: Path) -> None:
    """What pip install -e . leaves of a package: its entry points."""
    import tomllib

    project = tomllib.loads(pyproject)["project"]
    info = root / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    groups = [
        f"[{group}]\n" + "".join(f"{name} = {target}\n" for name, target in names.items())
        for group, names in project["entry-points"].items()
    ]
    (info / "entry_points.txt").write_text("\n".join(groups))


@contextlib.contextmanager
def reader(name: str) -> Iterator[tuple[Shell, Path]]:
    """An empty folder, and what runs a command there: this process, or a new one."""
    with place() as here:

        def in_process(words: list[str]) -> tuple[int, str]:
            ran = here.run(words)
            assert ran.code in (0, 1), ran.err
            return ran.code, ran.out

        alone = name in REAL or name == "own-benchmark"  # entry points are read once in a process
        yield _by_subprocess if alone else in_process, here.root


def shape(text: str) -> str:
    """A text of which neither numbers matter, nor the width of columns, nor what is fastest."""
    text = re.sub(r"◀|^\w+: .* is fast.*$", "", text, flags=re.M)
    return re.sub(r"[ ─]+", " ", re.sub(r"\d+(\.\d+)?", "N", text))


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            page.stem,
            marks=[pytest.mark.slow, pytest.mark.mpi, needs_torch]
            if page.stem in REAL
            else [pytest.mark.slow] * (page.stem not in QUICK),
        )
        for page in sorted(PAGES.glob("*.md"))
    ],
)
def test_it_prints_what_the_page_shows(name: str) -> None:
    if name == "read-the-store":
        for package in ("duckdb", "polars"):
            pytest.importorskip(package, reason="in the extra dev")
    text = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    with reader(name) as (shell, root):
        anew = made_anew(text, shell, root)
        wanted, found = Normal(root)(text), Normal(root)(anew)  # each counts its own runs
    if name in REAL:
        wanted, found = shape(wanted), shape(found)
    assert found.splitlines() == wanted.splitlines(), "right? then python -m tests.test_tutorials " + name


def main(names: list[str]) -> None:
    """Write the pages anew."""
    for page in sorted(PAGES.glob("*.md")):
        if page.stem in names or not names:
            with reader(page.stem) as (shell, root):
                anew = made_anew(page.read_text(encoding="utf-8"), shell, root)
            page.write_text(anew, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
