"""What can be set in a communication library, and what it counts. Plain data: nothing here asks a library."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Choice:
    """A value that a knob takes."""

    word: str
    """The value as it is set."""
    meaning: str = ""


@dataclass(frozen=True, slots=True)
class Knob:
    """One thing that can be set: a control variable of MPI_T (MPI-4.1, section 15.3), or a declared variable."""

    name: str
    type: str
    """The type as the library has it: ``int``, ``char``, ``bool``, …; ``enum`` where it lists its values."""
    value: str
    """The value here: the default, unless the environment says otherwise. Empty: none, or unknown."""
    variable: str = ""
    """The environment variable that sets it; empty: none does."""
    choices: tuple[Choice, ...] = ()
    """All values it takes; empty: any of its type."""
    scope: str = ""
    """Of MPI_T: where it may be written while a program runs. ``all_eq``: on all processes to the same value."""
    verbosity: str = ""
    """Of MPI_T: whom it is for, as ``tuner basic``."""
    category: str = ""
    description: str = ""
    source: str = ""
    """Where this was read; empty: in the library itself."""

    def choice(self, word: str) -> Choice | None:
        """The choice called `word`."""
        return next((choice for choice in self.choices if choice.word == word), None)


@dataclass(frozen=True, slots=True)
class PerformanceVariable:
    """Something that a library counts: a performance variable of MPI_T (MPI-4.1, section 15.3)."""

    name: str
    kind: str
    """Of MPI_T: ``counter`` and ``aggregate`` only grow, ``size`` and ``level`` are what they are now, …"""
    type: str
    binding: str = ""
    """What it belongs to: ``communicator``, ``window``, …; empty: the process."""
    verbosity: str = ""
    category: str = ""
    description: str = ""


@dataclass(frozen=True, slots=True)
class LibraryKnobs:
    """Everything that can be set in one library on this machine, and everything that it counts."""

    backend: str
    library: str = ""
    version: str = ""
    how: str = ""
    """The source of the lists: MPI_T, or documentation."""
    knobs: tuple[Knob, ...] = ()
    pvars: tuple[PerformanceVariable, ...] = ()
    reason: str = ""
    """Why there are none; empty where there are some."""
    fix: str = ""
    """What to do about it."""
    joined: bool = False
    """Whether several knobs choose an algorithm together, as NCCL_ALGO and NCCL_PROTO do."""
    trees: tuple[str, ...] = ()
    """The selection of collectives that is built into MPICH, as JSON texts; empty in other libraries."""

    @property
    def title(self) -> str:
        """Name and version of the library."""
        return f"{self.library} {self.version}".strip() or self.backend

    def knob(self, name: str) -> Knob | None:
        """The knob with this name or environment variable, in any letter case."""
        wanted = name.lower()
        return next((knob for knob in self.knobs if wanted in (knob.name.lower(), knob.variable.lower())), None)
