"""The type of a rule of planning, and what rules look at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from omb_py.backends.capabilities import Capabilities
from omb_py.engine.devices.registry import HOST
from omb_py.engine.program.benchmark import Benchmark, Cell
from omb_py.errors import OmbError, UsageError
from omb_py.options.request import Request
from omb_py.orchestrate.planning.parsing import ParsedRequest

Subject = Literal["words", "side", "options", "ranks", "cells", "cells of a side", "sides left", "cells on ranks"]
"""What a rule looks at, in the order in which it becomes known. Several backends and devices are several sides, and
one that breaks a rule with an EnvironmentProblem is left out; ``options`` are looked at for the sides that remain."""


@dataclass(frozen=True, slots=True)
class RuleContext:
    """What is known of a request when a rule is applied."""

    parsed: ParsedRequest
    offers: Mapping[str, Capabilities]
    """Capabilities of the request's backends, by name."""
    backend: str = ""
    """Backend of a side."""
    device: str = ""
    """Device of a side."""
    alone: bool = False
    """Whether no other request is measured beside."""
    ranks: int = 0
    """World size, where it is known."""
    cells: tuple[Cell, ...] = ()
    """The cells of the request, or of a side, where they are known."""

    @property
    def request(self) -> Request:
        """The request for the sides that are left."""
        return self.parsed.request

    @property
    def benchmark(self) -> Benchmark:
        """The benchmark."""
        return self.parsed.benchmark

    @property
    def offer(self) -> Capabilities:
        """The capabilities of the side's backend."""
        return self.offers[self.backend]

    @property
    def on_device(self) -> tuple[str, ...]:
        """The request's devices without the host."""
        return tuple(device for device in self.request.devices if device != HOST)

    @property
    def able_to_wait(self) -> str:
        """The backends whose calls return before they are done, as an error names them."""
        return " or ".join(name for name, offer in self.offers.items() if offer.asynchronous)

    def given(self, *names: str) -> str:
        """The spelling of the first of some options that is given; empty where none is."""
        flags = {"in_place": "-l/--in-place", "imbalance": "--imbalance", "ddt": "-D/--ddt"}
        return next((flags[name] for name in names if self.request.options.get(name)), "")

    def every(self, ability: Callable[[Capabilities], bool]) -> bool:
        """Whether all backends of the request have an ability."""
        return all(ability(self.offers[name]) for name in self.request.backends)


class UnfitRanks(UsageError):
    """The options of a benchmark do not fit the number of ranks; a suite measures it on its other numbers."""


@dataclass(frozen=True, slots=True)
class RequestRule:
    """One demand on a request."""

    name: str
    """What is refused, in words."""
    looks_at: Subject
    why: Callable[[RuleContext], str | None]
    """The message of a request that is refused, with what to do; empty where it is accepted. A grammar that raises
    its own UsageError may do so."""
    error: type[OmbError] = UsageError
    """The class of the error, which decides the exit code."""
    option: str = ""
    """The option without which the rule says nothing."""

    def check(self, context: RuleContext) -> None:
        """Raises the rule's error for a request that breaks it."""
        if (not self.option or context.request.get(self.option)) and (why := self.why(context)):
            raise self.error(why)
