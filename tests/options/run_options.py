"""The options of ``omb_py.run`` as a typed dictionary, made from the option table.

``python -m tests.options.run_options`` writes omb_py/run_options.py; test_run_options.py fails when it is out of date.
"""

from __future__ import annotations

from textwrap import fill

from omb_py.backends.registry import own_options
from omb_py.options.option import Option
from omb_py.options.request import Request
from omb_py.options.table import TABLE
from tests.architecture.options_page import help_of
from tests.support.machines.mpi import ROOT

FILE = ROOT / "omb_py" / "run_options.py"
PRINTED = {"format", "full", "print_rate", "percentiles", "graph", "json", "debug", "report"}
"""Options on what is printed, which ``run`` does not take: it returns the rows."""
PARAMETERS = {"store", "no_store", "tags"}
"""Options for which ``run`` has parameters of its own."""
OF_THE_PROCESS = {"own_mpi"}
"""Options that hold for a process: Python code sets ``OMB_PY_MPI``."""
FORMS = {
    "validate": "bool",
    "repeat_for": "float | None",
    "sizes": "str | int | Sequence[int] | None",
    "iterations": "str | int",
}
"""Types of values that are not what the reader of the option returns."""
HEAD = '''"""The options of :func:`omb_py.run`, as ``python -m tests.options.run_options`` makes them of the table."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypedDict


class RunOptions(TypedDict, total=False):
    """Options of a measurement, by name. Those that are not given have the default of the benchmark or the backend."""

    placement: str
    """Places of the buffers of sender and receiver, as ``D H``."""
    validation_log: Path | None
    """Folder for a log of wrong bytes, which must not exist yet."""
    settings: Mapping[str, str]
    """Backend -> text of its own option."""
'''


def type_of(option: Option) -> str:
    """The type of the value of an option, as Python writes it."""
    if option.name in FORMS:
        return FORMS[option.name]
    if option.reader is None:
        return "bool"
    name = option.reader.kind.replace("tuple[str, ...]", "str | Sequence[str]")
    may_be_none = option.usual is not None or Request("barrier").get(option.name) is None
    return f"{name} | None" if may_be_none and option.name not in own_options() else name


def source() -> str:
    """The text of the file."""
    lines = [HEAD.rstrip()]
    for option in TABLE:
        if option.name not in PRINTED | PARAMETERS | OF_THE_PROCESS and not (option.hidden or option.ignored):
            lines.append(f"    {option.name}: {type_of(option)}")
            text = help_of(option).replace("\\", "\\\\")
            lines.append(
                fill(f'"""{text}"""', 116, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)
            )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    FILE.write_text(source(), encoding="utf-8")
