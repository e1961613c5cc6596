"""Options that backends and observers declare for themselves, as ``--nccl``, as entries of the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from omb_py.backends.registry import own_options
from omb_py.engine.program.benchmark import Benchmark
from omb_py.options.option import Option
from omb_py.options.readers import Reader
from omb_py.plug_ins import has_plug_ins


def backend_options(run_wide: bool) -> tuple[Option, ...]:
    """One entry for each backend that has an option of its own; its value goes into ``Request.settings``.

    Args:
        run_wide: True for the options that hold for a whole run, False for those in which cells may differ.
    """
    return tuple(
        Option(
            name,
            f"--{name}",
            own.help,
            own.metavar,
            Reader("settings", own.read),
            default=own.default,
            scope="run" if run_wide else "cell",
            makes=_setting_of(name),
            joins=True,
            rare=True,
        )
        for name, own in own_options().items()
        if own.run_wide == run_wide
    )


def _setting_of(backend: str) -> Callable[[str], Mapping[str, Mapping[str, str]]]:
    def makes(text: str) -> Mapping[str, Mapping[str, str]]:
        return {"settings": {backend: text}}

    return makes


def observer_options() -> tuple[Option, ...]:
    """One entry for each observer of another package. Without such a package no observer is loaded."""
    if not has_plug_ins("omb_py.observers"):
        return ()
    from omb_py.engine.observers.registry import installed  # loads NumPy

    return tuple(
        Option(
            name,
            kind.option,
            kind.help,
            kind.metavar,
            Reader(name, str) if kind.metavar else None,
            takers=has_timed_loop,
            lacks="timed loop around which it could be read",
            cell="observers",
            rare=True,
        )
        for name, kind in installed().loaded.items()
    )


def has_timed_loop(benchmark: Benchmark) -> bool:
    """Whether something can be read around the loop of this benchmark."""
    return not benchmark.once and benchmark.runs is None
