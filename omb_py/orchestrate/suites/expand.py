"""Expand a suite to requests: benchmarks × options × numbers of ranks, each checked as a command line would be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path

from omb_py.engine.devices.registry import HOST
from omb_py.engine.program.benchmark import Benchmark
from omb_py.errors import EnvironmentProblem, UsageError, nearest
from omb_py.options.request import DEFAULT_RANKS, Request, SuitePosition
from omb_py.orchestrate.planning.parsing import parse
from omb_py.orchestrate.planning.resolution import CheckedRequest, resolve
from omb_py.orchestrate.planning.rule import UnfitRanks
from omb_py.orchestrate.planning.rules import check_ranks
from omb_py.orchestrate.suites.node_layout import NodeContents, NodeLayout, nodes_of
from omb_py.orchestrate.suites.option_values import Chosen, OptionKey, Values, Vocabulary, choose
from omb_py.orchestrate.suites.suite_file import ENTRY_KEYS, Named, Suite, SuiteEntry, read_suite
from omb_py.orchestrate.suites.toml_values import TomlSetting, unknown_key
from omb_py.orchestrate.suites.trust import require_trust
from omb_py.results.skip import Skip
from omb_py.suites import find, names


@dataclass(frozen=True, slots=True)
class Ranks:
    """Numbers of ranks for entries that give none."""

    usual: int = DEFAULT_RANKS
    most: int = DEFAULT_RANKS
    """The number that ``"max"`` stands for."""
    given: bool = False
    """True if the user gave the number (``-n``), which then overrides the suite's defaults."""
    only: bool = False
    """True if a launcher has already started the usual number of ranks, so that no other number is possible."""


@dataclass(slots=True)
class Expanded:
    """The requests of a suite, and what cannot be measured here."""

    checked: list[CheckedRequest] = field(default_factory=list)
    skips: list[Skip] = field(default_factory=list)
    without_device: set[str] = field(default_factory=set)
    """Names of entries on accelerators, which the nodes do not have."""

    @property
    def requests(self) -> list[Request]:
        return [checked.request for checked in self.checked]


def load_suite(word: str, starting: bool = True) -> Suite:
    """Read a suite that the user trusts, as :func:`find_suite` reads it.

    Args:
        starting: False: the suite is only shown, so it may name programs that the user does not trust.

    Raises:
        UsageError: also where the suite needs trust and has none.
    """
    suite = find_suite(word)
    require_trust(suite, starting)
    return suite


def find_suite(word: str) -> Suite:
    """Read a suite by its name, or from a file: a word with a slash or the ending ``.toml`` is a path.

    Raises:
        UsageError: there is no such suite (the message has the nearest name), or the file is wrong.
    """
    from omb_py.suites.shipped import shipped

    if "/" in word or word.endswith(".toml"):
        return read_suite(Path(word), word)
    known = shipped()
    if word not in known:
        path = f"./{word}" if word and Path(word).is_file() else f"./{word or 'mine'}.toml"
        raise UsageError(f"no suite {word!r} (a file is given by its path, as {path}): {nearest(word, known)}")
    return replace(read_suite(known[word], known[word].name), word=word, content="")


def expand(
    suite: Suite,
    words: Vocabulary,
    given: Values | None = None,
    ranks: Ranks | None = None,
    contents: NodeContents | None = None,
) -> Expanded:
    """Multiply a suite out to requests, in the order of its entries.

    Args:
        given: options of ``omb-py run`` by key. They override the suite's defaults, and its entries override them.
        ranks: numbers of ranks for entries that give none.
        contents: what the nodes have, for entries that place their ranks by it.

    Raises:
        UsageError: a key or value is wrong. The message has file, line, key, what was expected and the nearest valid
            one.
    """
    return _Expansion(suite, words, given or {}, ranks or Ranks(), contents or NodeContents()).expanded()


class _Expansion:
    def __init__(self, suite: Suite, words: Vocabulary, given: Values, ranks: Ranks, contents: NodeContents) -> None:
        self.suite, self.words, self.given, self.ranks, self.contents = suite, words, given, ranks, contents
        self.out = Expanded()

    def expanded(self) -> Expanded:
        option_texts: list[Mapping[str, str]] = []
        seen: dict[str, int] = {}
        measured = [(entry, [b for n in entry.benchmarks if (b := self._find(n))]) for entry in self.suite.entries]
        self._check_shared([benchmark for _, benchmarks in measured for benchmark in benchmarks])
        for entry, benchmarks in measured:
            for benchmark in benchmarks:
                for checked, texts in self._requests(entry, benchmark):
                    # the part numbers the entry, so only its name takes part in the search for doubles
                    part = checked.request.part
                    content = repr((checked.request.changed(part=None), part and (part.name, part.hosts)))
                    if content in seen:
                        raise entry.error(f"{benchmark.name} with these options is in entry {seen[content]} already")
                    seen[content] = entry.number
                    self.out.checked.append(checked)
                    option_texts.append(texts)
        self.out.checked = _note_differences(self.out.checked, option_texts)
        return self.out

    def _find(self, named: Named) -> Benchmark | None:
        try:
            return find(named.name)
        except EnvironmentProblem as problem:
            self.out.skips.append(Skip(named.name, str(problem)))
            return None
        except UsageError:
            raise named.at.error(f"benchmark {named.name!r} is unknown: {nearest(named.name, names())}") from None

    def _check_shared(self, benchmarks: Sequence[Benchmark]) -> None:
        """Raise UsageError where a default or an option of the command line applies to no benchmark of the suite."""
        every: dict[str, OptionKey] = {}
        for benchmark in benchmarks:
            for name, key in self.words.keys(benchmark).items():
                every[name] = key if name not in every or key.fits else every[name]
        for setting in self.suite.defaults:
            if every:
                choose(setting, _key(setting, every, ("cell", "run")))
                if not every[setting.key].fits:
                    raise setting.error(f"no benchmark of suite {self.suite.name} takes it: leave it out")
        for name in self.given:
            if name in every and not every[name].fits:
                raise UsageError(f"no benchmark of suite {self.suite.name} takes --{name}: leave it out")

    def _requests(self, entry: SuiteEntry, benchmark: Benchmark) -> Iterator[tuple[CheckedRequest, Mapping[str, str]]]:
        """Yield the requests of one benchmark of an entry with the texts of their options; skip what is impossible."""
        keys = self.words.keys(benchmark)
        counts: list[tuple[int, tuple[str, ...]]]
        counts = [] if entry.layout else [(count, ()) for count in self._counts(entry, benchmark)]
        for combination in product(*self._alternatives(entry, keys)):
            if entry.layout and (why := self._lack_of_device(entry, combination)):
                self.out.skips.append(Skip(_name(entry, benchmark), why))
                continue
            try:
                request = self.words.request(benchmark, {chosen.key: chosen.value for chosen in combination})
                checked = resolve(parse(request.changed(ranks=None)), leave_out=True)
                self.out.skips += (Skip(f"{benchmark.name} ({skip.what})", skip.reason) for skip in checked.skips)
            except UsageError as error:
                raise self._blame(error, combination, entry, benchmark) from None
            except EnvironmentProblem as problem:
                self.out.skips.append(Skip(_name(entry, benchmark), str(problem)))
                continue
            for chosen in combination:
                if chosen.at and chosen.value is not None and not keys[chosen.key].fits:
                    raise chosen.at.error(f"{benchmark.name} does not take it")
            texts = {chosen.key: chosen.text for chosen in combination if keys[chosen.key].scope == "cell"}
            if entry.layout:
                counts = self._place_ranks(entry, entry.layout, checked)
            for count, hosts in counts:
                try:
                    on_ranks = checked.on_ranks(count)
                except UnfitRanks as error:
                    self.out.skips.append(Skip(benchmark.name, str(error)))
                    continue
                part = SuitePosition(self.suite.name, self.suite.digest, entry.number, entry.name, hosts)
                named = {"entry": entry.name} if entry.name else {}
                yield on_ranks.changed(part=part), {**named, "ranks": str(count), **texts}

    def _lack_of_device(self, entry: SuiteEntry, combination: Sequence[Chosen]) -> str:
        """Say why the nodes do not have the accelerators of an entry that places its ranks; empty where they do."""
        device = next((str(chosen.value) for chosen in combination if chosen.key == "device"), HOST)
        if device == HOST:
            return ""
        if not self.contents.accelerators:
            self.out.without_device.add(entry.name)
            return "the nodes have no accelerators, as far as is known"
        known = self.contents.device
        return "" if known in ("", device) else f"the accelerators of the nodes are {known}"

    def _place_ranks(
        self, entry: SuiteEntry, layout: NodeLayout, checked: CheckedRequest
    ) -> list[tuple[int, tuple[str, ...]]]:
        """Return the number of ranks and their nodes, or nothing where they cannot be placed here: it is skipped."""
        try:
            if self.ranks.only:
                raise EnvironmentProblem("omb-py chooses its nodes: start omb-py without a launcher")
            ranks, hosts = layout.choose_nodes(nodes_of(checked.request) or self.contents.stand_in, self.contents)
            check_ranks(checked.benchmark, ranks)
        except (EnvironmentProblem, UsageError) as problem:
            self.out.skips.append(Skip(_name(entry, checked.benchmark), str(problem)))
            return []
        return [(ranks, hosts)]

    def _counts(self, entry: SuiteEntry, benchmark: Benchmark) -> Iterator[int]:
        """Yield the numbers of ranks for a benchmark; those that it does not admit are skipped.

        A number that stands in the entry itself must be admitted: it is a mistake in the file otherwise.
        """
        ranks = self.ranks
        wanted = entry.ranks or (() if ranks.given else self.suite.ranks) or (ranks.usual,)
        for count in dict.fromkeys(count if isinstance(count, int) else ranks.most for count in wanted):
            try:
                check_ranks(benchmark, count)
            except UsageError as error:
                if entry.ranks_at and count in entry.ranks:
                    raise entry.ranks_at.error(str(error)) from None
                self.out.skips.append(Skip(benchmark.name, str(error)))
                continue
            if ranks.only and count != ranks.usual:
                reason = f"it is to be measured on {count} ranks, and this job has {ranks.usual}"
                self.out.skips.append(Skip(benchmark.name, reason))
                continue
            yield count

    def _alternatives(self, entry: SuiteEntry, keys: Mapping[str, OptionKey]) -> list[list[Chosen]]:
        """List the values of each key; entries override the command line, which overrides the suite's defaults."""
        values: dict[str, list[Chosen]] = {}
        for setting in self.suite.defaults:
            if setting.key in keys and keys[setting.key].fits:
                values[setting.key] = choose(setting, keys[setting.key])
        for name, value in self.given.items():
            if name in keys and keys[name].fits:
                values[name] = [Chosen(name, value, str(value))]
        for setting in entry.options:
            values[setting.key] = choose(setting, _key(setting, keys, ("cell",)))
        return list(values.values())

    def _blame(
        self, error: UsageError, combination: Sequence[Chosen], entry: SuiteEntry, benchmark: Benchmark
    ) -> UsageError:
        """Give the error the line of the key that is refused on its own, else the line of the entry."""
        for chosen in reversed(combination):
            try:
                alone = self.words.request(benchmark, {chosen.key: chosen.value})
                resolve(parse(alone))
            except UsageError as cause:
                return chosen.at.error(str(cause)) if chosen.at else cause
            except EnvironmentProblem:
                continue
        return entry.error(f"{benchmark.name}: {error}")


def _name(entry: SuiteEntry, benchmark: Benchmark) -> str:
    return f"{benchmark.name} (entry: {entry.name})" if entry.name else benchmark.name


def _key(setting: TomlSetting, keys: Mapping[str, OptionKey], scopes: Sequence[str]) -> OptionKey:
    """Look up the key of a setting. Raises UsageError where it does not exist, or is not allowed at this place."""
    key = keys.get(setting.key)
    if key is None:
        valid = {name for name, key in keys.items() if key.scope in scopes and key.fits} | {"ranks"}
        raise setting.error(unknown_key(setting.key, valid | (set(ENTRY_KEYS) if len(scopes) == 1 else set())))
    if key.scope not in scopes:
        raise setting.error(
            "holds for the whole suite: write it under [defaults]"
            if key.scope == "run"
            else f"is not for a suite: give --{key.name} to omb-py run"
        )
    return key


_SHOWN_ANYWAY = ("message-size", "type", "full", "tail-lat", "validation", "iterations", "warmup", "precision")
"""Options that a table shows anyway, or that do not change what is measured."""


def _note_differences(requests: Sequence[CheckedRequest], options: Sequence[Mapping[str, str]]) -> list[CheckedRequest]:
    """Note in each request the options in which it differs from the others of the same benchmark."""
    by_benchmark: dict[str, list[Mapping[str, str]]] = {}
    for checked, texts in zip(requests, options, strict=True):
        by_benchmark.setdefault(checked.request.benchmark, []).append(texts)
    out = []
    for checked, own in zip(requests, options, strict=True):
        others = by_benchmark[checked.request.benchmark]
        apart = {key: text for key, text in own.items() if any(texts.get(key) != text for texts in others)}
        varies = {key: text for key, text in apart.items() if key not in _SHOWN_ANYWAY}
        varies_too = {key: text for key, text in apart.items() if key in _SHOWN_ANYWAY}
        assert checked.request.part is not None
        out.append(checked.changed(part=replace(checked.request.part, varies=varies, varies_too=varies_too)))
    return out
