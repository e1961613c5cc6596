"""Read a contract: what a supplier promises for the rows of a suite, and what the nodes have (docs/accept.md)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from omb_py.engine.devices.registry import GPU_KINDS
from omb_py.errors import nearest
from omb_py.grammar.values import Quantity
from omb_py.launchers.core_binding import processors
from omb_py.orchestrate.accept.criteria_file import read_quantities
from omb_py.orchestrate.suites import toml_values as toml
from omb_py.orchestrate.suites.node_layout import NodeContents
from omb_py.orchestrate.suites.suite_file import Suite
from omb_py.orchestrate.suites.toml_values import TomlFile, TomlSetting, TomlTable, kind, unknown_key
from omb_py.results.accept.criteria import METRICS, Case, Criterion, Range
from omb_py.results.units import counted, size_text

PROMISED = "promised"
MACHINE = "machine"
MACHINE_KEYS = ("nics", "cores", "accelerators", "device", "nearest", "distant")
_MOST = 100_000


@dataclass(frozen=True, slots=True)
class Promise:
    """A supplier's numbers for a row."""

    bounds: Mapping[int | None, Quantity]
    """By message size in bytes; None stands for all sizes."""
    at: TomlSetting


@dataclass(frozen=True, slots=True)
class Contract:
    """What was promised, and for which machine. Without a file nothing is promised."""

    file: str = ""
    content: str = ""
    """SHA-256 of the file."""
    promises: Mapping[str, Promise] | None = None
    """Id of a criterion -> its bound."""
    contents: NodeContents = field(default_factory=NodeContents)

    def bounded(self, criteria: Sequence[Criterion]) -> list[Criterion]:
        """Give criteria the bounds that were promised."""
        return [self._bound_criterion(criterion) for criterion in criteria]

    def _bound_criterion(self, criterion: Criterion) -> Criterion:
        promise = (self.promises or {}).get(criterion.id)
        if promise is None:
            return criterion
        less = METRICS[criterion.metric].better == "less"
        ranges = {
            size: Range(high=bound.value, given=("", bound.text))
            if less
            else Range(low=bound.value, given=(bound.text, ""))
            for size, bound in promise.bounds.items()
        }
        at = f"{promise.at.file}:{promise.at.line}"
        if None in ranges:
            return replace(criterion, source="contract", ranges=ranges, share=0.0, at=at)
        return replace(criterion, ranges=ranges, at=at)

    def check_sizes(self, cases: Iterable[Case]) -> None:
        """Raises UsageError where a size that was promised is not measured."""
        sizes: dict[str, set[int]] = {}
        for case in cases:
            if "size_bytes" in case.facts:
                sizes.setdefault(case.criterion.id, set()).add(case.size)
        for name, promise in (self.promises or {}).items():
            known = sizes.get(name, set())
            if known and (lacking := [size for size in promise.bounds if size is not None and size not in known]):
                shown = ", ".join(map(size_text, sorted(known)[:12])) + (" …" if len(known) > 12 else "")
                raise promise.at.error(f"the row has no size {size_text(lacking[0])}: its sizes are {shown}")

    def sentence(self) -> str:
        """Say what is promised and what the nodes have, for the report."""
        has, cores = self.contents, self.contents.cores
        parts = [
            f"{counted(has.nics, 'NIC')}",
            f"{cores} cores" if cores is not None else f"{len(processors().cores)} cores as on this machine",
            f"{counted(has.accelerators, 'accelerator')} {has.device}".strip(),
        ]
        far = f"; most distant nodes {' and '.join(has.distant)}" if has.distant else ""
        name = f"contract {self.file} ({self.content[:12]})" if self.file else "no contract"
        return f"{name}: a node has {', '.join(parts)}{far}"


def read_contract(path: Path, suite: Suite, criteria: Sequence[Criterion]) -> Contract:
    """Read a contract's file.

    Raises:
        UsageError: a key or a row is unknown, or a value has no unit or that of another kind. The message has file,
            line and key.
    """
    text = toml.read_text(path, str(path), "contract")
    file = TomlFile(text, str(path))
    if (unknown := next((name for name in file.data if name not in (PROMISED, MACHINE)), None)) is not None:
        raise file.key(unknown).error(unknown_key(unknown, (PROMISED, MACHINE)))
    promised, machine = file.table(PROMISED), file.table(MACHINE)
    rows = {criterion.id: criterion for criterion in criteria if criterion.promised}
    promises = {setting.key: _promise(setting, rows, suite) for setting in (promised.settings if promised else ())}
    contents = _contents(machine) if machine else NodeContents()
    return Contract(file.file, hashlib.sha256(text.encode()).hexdigest(), promises, contents)


def _promise(setting: TomlSetting, rows: Mapping[str, Criterion], suite: Suite) -> Promise:
    if setting.key not in rows:
        raise setting.error(f"suite {suite.name} has no row of this name: {nearest(setting.key, rows)}")
    none: Mapping[int | None, Quantity] = {}
    bounds = toml.read({setting.key: setting}, setting.key, read_quantities, none)
    dimension = METRICS[rows[setting.key].metric].dimension
    for bound in bounds.values():
        if bound.dimension != dimension:
            raise setting.error(f"{setting.key} is a {dimension}, and {bound.text!r} is a {bound.dimension}")
    return Promise(bounds, setting)


def _contents(table: TomlTable) -> NodeContents:
    keys = table.by_key(MACHINE_KEYS)
    usual = NodeContents()
    if "accelerators" in keys and "device" not in keys and keys["accelerators"].value != 0:
        raise keys["accelerators"].error(f"needs a key 'device': their kind, one of {', '.join(GPU_KINDS)}")
    return NodeContents(
        toml.read(keys, "nics", lambda s: toml.whole(s, 1, _MOST), usual.nics),
        toml.read(keys, "cores", lambda s: toml.whole(s, 1, _MOST), usual.cores),
        toml.read(keys, "accelerators", lambda s: toml.whole(s, 0, _MOST), usual.accelerators),
        toml.read(keys, "device", lambda s: toml.one_of(s, GPU_KINDS), usual.device),
        toml.read(keys, "nearest", _pair, usual.nearest),
        toml.read(keys, "distant", _pair, usual.distant),
    )


def _pair(setting: TomlSetting) -> tuple[str, ...]:
    names = setting.value
    if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
        raise setting.error(f'expected two names of nodes, as ["n1", "n9"], got {kind(names)}')
    if len(set(names)) != 2 or len(names) != 2:
        raise setting.error(f'expected two names of nodes, as ["n1", "n9"], got {len(names)}')
    return tuple(names)
