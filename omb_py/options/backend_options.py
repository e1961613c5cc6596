"""Options that backends declare for themselves, as ``--nccl`` and ``--mock``, as entries of the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from omb_py.backends.registry import own_options
from omb_py.options.option import Option
from omb_py.options.readers import Reader


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
        )
        for name, own in own_options().items()
        if own.run_wide == run_wide
    )


def _setting_of(backend: str) -> Callable[[str], Mapping[str, Mapping[str, str]]]:
    def makes(text: str) -> Mapping[str, Mapping[str, str]]:
        return {"settings": {backend: text}}

    return makes
