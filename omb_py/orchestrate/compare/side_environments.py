"""The environments of the two sides of a comparison: virtual environment, modules and variables."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import cast

import omb_py
from omb_py.distribution import DISTRIBUTION, checkout
from omb_py.engine.rank.launch_facts import SideSettings
from omb_py.errors import EnvironmentProblem, UsageError, nearest
from omb_py.orchestrate.compare.pip_environments import Note, check_requirement, environment_for
from omb_py.orchestrate.launching.launch_command import HERE, RankEnvironment
from omb_py.results.compare.match import SIDES, Side

_ASK = "import omb_py; print('omb-py', omb_py.__version__)"
_ASK_S = 60.0
_DROPPED = ("PYTHONHOME", "__PYVENV_LAUNCHER__")
"""Variables of this Python that would make another one look for its library in the wrong place."""
_VOLATILE = ("_", "SHLVL", "PWD", "OLDPWD")


@dataclass(slots=True)
class SideSpec:
    """The options of one side on the command line."""

    env: str = ""
    """Folder of a virtual environment, or the path of a Python in it."""
    modules: list[str] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)
    options: list[str] = field(default_factory=list)
    """Options of the benchmark, as words of a command line."""
    pip: list[str] = field(default_factory=list)
    """Requirements of packages that this side has instead of ours."""

    def describe(self) -> str:
        """Describe the side in a report or message."""
        parts = [self.env, *self.pip, *self.modules, *(f"{k}={v}" for k, v in self.variables.items()), *self.options]
        return " ".join(filter(None, parts))


def parse_sides(
    envs: Sequence[str] = (),
    modules: Sequence[str] = (),
    sets: Sequence[str] = (),
    options: Sequence[str] = (),
    pips: Sequence[str] = (),
) -> dict[Side, SideSpec]:
    """Read the two sides from the values of ``--env``, ``--module``, ``--set``, ``--option`` and ``--pip``.

    Raises:
        UsageError: a value has the wrong form, a side is neither BASE nor NEW, or an environment is given twice or
            beside ``--pip``.
    """
    sides: dict[Side, SideSpec] = {side: SideSpec() for side in SIDES}
    for text in envs:
        side, value = _split_side(text, "--env", "=", "BASE=/path/of/venv")
        if sides[side].env:
            raise UsageError(f"--env {side} is given twice: {sides[side].env} and {value}")
        sides[side].env = value
    for text in pips:
        side, value = _split_side(text, "--pip", "=", "NEW=mpich==5.0.2")
        if sides[side].env:
            raise UsageError(f"--env and --pip of {side} exclude each other: install {value} there, or leave --env out")
        sides[side].pip.append(check_requirement(value, f"--pip {side}="))
    for text in modules:
        side, value = _split_side(text, "--module", "=", "NEW=openmpi/5.0.7")
        sides[side].modules.append(value)
    for text in sets:
        side, value = _split_side(text, "--set", ":", "NEW:UCX_TLS=tcp")
        name, equals, content = value.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"--set takes SIDE:NAME=VALUE, as NEW:UCX_TLS=tcp, not {text!r}")
        sides[side].variables[name.strip()] = content
    for text in options:
        side, value = _split_side(text, "--option", ":", "NEW:binding=mpi4py")
        sides[side].options.append(value if value.startswith("-") else f"--{value}")
    return sides


def spec_of(
    side: Side, venv: str, modules: Sequence[str], variables: Mapping[str, str], pips: Sequence[str]
) -> SideSpec:
    """Make a side from the values of :class:`omb_py.Side`.

    Raises:
        UsageError: `venv` and `pips` are both given, or one of `pips` is no requirement.
    """
    if venv and pips:
        raise UsageError(f"venv and pip of {side} exclude each other: install {pips[0]} there, or leave venv out")
    checked = [check_requirement(text, f"pip of {side}: ") for text in pips]
    return SideSpec(venv, list(modules), dict(variables), pip=checked)


def _split_side(text: str, flag: str, between: str, example: str) -> tuple[Side, str]:
    word, separator, value = text.partition(between)
    side = next((s for s in SIDES if s == word.strip().upper()), None)
    if not separator or not value.strip() or side is None:
        hint = f": {nearest(word.strip().upper(), SIDES)}" if separator and side is None else ""
        raise UsageError(f"{flag} takes SIDE{between}…, as {example}, not {text!r}{hint}")
    return side, value.strip()


def where_of(
    side: Side,
    spec: SideSpec,
    ours: Mapping[str, str] = os.environ,
    note: Note = lambda text: None,
    needs_omb_py: bool = True,
) -> RankEnvironment:
    """Find the Python and the environment of a side, and try whether they have this version of omb-py.

    Args:
        note: called with a sentence before packages are installed.
        needs_omb_py: whether the side runs omb-py itself.

    Raises:
        UsageError: the folder of ``--env`` is no Python environment.
        EnvironmentProblem: packages cannot be installed, a module cannot be loaded, or the environment lacks omb-py or
            has another version.
    """
    if not spec.describe():
        return HERE
    variables: dict[str, str | None] = {}
    python = sys.executable
    if spec.env:
        python, variables = _read_venv(side, spec.env, ours)
    elif spec.pip:
        own = environment_for(spec.pip, note)
        python, variables = _read_venv(side, str(own.folder), ours)
        variables |= own.variables
    if spec.modules:
        variables |= _load_modules(side, spec.modules, {**ours, **_drop_unset(variables)})
    variables |= spec.variables
    asked: SideSettings = {
        "side": side,
        "env": spec.env,
        "pip": spec.pip,
        "modules": spec.modules,
        "set": spec.variables,
        "options": spec.options,
    }
    given = cast(SideSettings, {name: value for name, value in asked.items() if value})
    where = RankEnvironment(python, variables, {"config": given})
    if needs_omb_py and (spec.env or spec.pip or spec.modules):
        _try_out(side, where, spec)
    return where


def _drop_unset(variables: Mapping[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in variables.items() if value is not None}


def _read_venv(side: Side, text: str, ours: Mapping[str, str]) -> tuple[str, dict[str, str | None]]:
    path = Path(text).expanduser()
    python = path / "bin" / "python" if path.is_dir() else path
    if not os.access(python, os.X_OK) or python.is_dir():
        beside = [p.parent.parent.name for p in path.absolute().parent.glob("*/bin/python")]
        near = nearest(path.name, beside) if beside else "make one with python -m venv"
        raise UsageError(f"--env {side}={text}: no Python at {python}: {near}")
    # not resolved: the link itself is what makes Python find the environment
    python = python.absolute()
    variables: dict[str, str | None] = {name: None for name in _DROPPED if name in ours}
    variables |= {
        "VIRTUAL_ENV": str(python.parent.parent),
        "PATH": os.pathsep.join([str(python.parent), ours.get("PATH", os.defpath)]),
    }
    if source := checkout():
        # both sides measure with its code, whatever they have installed
        variables["PYTHONPATH"] = os.pathsep.join(filter(None, [source, ours.get("PYTHONPATH", "")]))
    return str(python), variables


def _load_modules(side: Side, modules: Sequence[str], environ: Mapping[str, str]) -> dict[str, str | None]:
    """Return the variables that change when the modules are loaded; None means unset."""
    script = (
        'type module >/dev/null 2>&1 || { [ -n "$MODULESHOME" ] && . "$MODULESHOME/init/bash"; }; '
        "type module >/dev/null 2>&1 || exit 97; "
        r"state() { command -p env -0; printf '\0'; printf '\0' >&2; }; state; "
        'for name; do module load "$name" >&2 || exit 98; state; done'
    )
    named = f"--module {side}={' '.join(modules)}"
    try:
        child = subprocess.run(
            ["bash", "-c", script, "omb-py", *modules],
            env=dict(environ),
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=_ASK_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EnvironmentProblem(f"{named}: cannot be loaded: {error}") from None
    if child.returncode == 97:
        raise EnvironmentProblem(f"{named}: this machine has no command 'module': use --env, or --set {side}:PATH=…")
    states = [_variables_of(text) for text in child.stdout.decode(errors="surrogateescape").split("\0\0")[:-1]]
    messages = child.stderr.decode(errors="replace").split("\0")[1:]
    # Environment Modules prints an error and still ends with status 0
    for name, message, (before, after) in zip(modules, messages, pairwise([*states, *states[-1:]]), strict=False):
        if message.strip() and not _changes(before, after):
            last = message.strip().splitlines()[-1].strip()
            raise EnvironmentProblem(f"--module {side}={name}: cannot be loaded: {last}: see module avail")
    if child.returncode:
        raise EnvironmentProblem(f"{named}: cannot be loaded: exit status {child.returncode}: see module avail")
    return _changes(environ, states[-1])


def _variables_of(text: str) -> dict[str, str]:
    """What ``env -0`` printed."""
    return dict(entry.split("=", 1) for entry in text.split("\0") if "=" in entry)


def _changes(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str | None]:
    """The variables that differ; None for one that is gone."""
    changed: dict[str, str | None] = {k: v for k, v in after.items() if before.get(k) != v and not _volatile(k)}
    return changed | {k: None for k in before if k not in after and not _volatile(k)}


def _volatile(name: str) -> bool:
    return name in _VOLATILE or name.startswith("BASH_FUNC")


def _try_out(side: Side, where: RankEnvironment, spec: SideSpec) -> None:
    try:
        child = subprocess.run(
            [where.python, "-W", "ignore", "-c", _ASK],
            env=where.environment(),
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=_ASK_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EnvironmentProblem(f"{side} ({spec.describe()}): cannot start {where.python}: {error}") from None
    install = f"{where.python} -m pip install {DISTRIBUTION}=={omb_py.__version__}"
    version = next((line.split()[-1] for line in child.stdout.splitlines() if line.startswith("omb-py ")), None)
    if version is None:
        last = (child.stderr.strip().splitlines() or [f"exit status {child.returncode}"])[-1]
        raise EnvironmentProblem(f"{side} ({spec.describe()}): omb-py cannot be loaded: {last}: {install}")
    if version != omb_py.__version__:
        raise EnvironmentProblem(
            f"{side} ({spec.describe()}): it has omb-py {version}, this is {omb_py.__version__}, and two versions may "
            f"measure different things: {install}"
        )
