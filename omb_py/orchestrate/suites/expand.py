"""From a suite to requests: benchmarks × options × numbers of ranks, each checked as a command line would be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path

from omb_py.backends.registry import capabilities_of
from omb_py.engine.program.benchmark import Benchmark
from omb_py.errors import EnvironmentProblem, UsageError, nearest
from omb_py.options.request import DEFAULT_RANKS, Part, Request
from omb_py.orchestrate.planning.backend_selection import narrowed
from omb_py.orchestrate.planning.plan import CheckedRequest, check, check_fits, check_ranks
from omb_py.orchestrate.planning.skip import Skip
from omb_py.orchestrate.suites.option_values import Chosen, Key, Values, Vocabulary, choose
from omb_py.orchestrate.suites.suite_file import Entry, Named, Suite, read_suite
from omb_py.orchestrate.suites.toml_values import Setting, nearest_key
from omb_py.suites import find, names


@dataclass(frozen=True, slots=True)
class Ranks:
    """How many ranks there are where an entry does not say."""

    usual: int = DEFAULT_RANKS
    most: int = DEFAULT_RANKS
    """What ``"max"`` means."""
    given: bool = False
    """The user gave the number (``-n``): it is stronger than the suite's defaults."""
    only: bool = False
    """A launcher around us has started the usual number: no other can be had."""


@dataclass(slots=True)
class Expanded:
    """A suite, multiplied out."""

    checked: list[CheckedRequest] = field(default_factory=list)
    skips: list[Skip] = field(default_factory=list)

    @property
    def requests(self) -> list[Request]:
        """What is measured, in the suite's order."""
        return [each.request for each in self.checked]


def load_suite(word: str) -> Suite:
    """The suite of this name, or in this file: a word with a slash or the ending ``.toml``.

    Raises:
        UsageError: there is none, with the nearest name; or the file is wrong.
    """
    from omb_py.suites.shipped import shipped

    if "/" in word or word.endswith(".toml"):
        return read_suite(Path(word), word)
    known = shipped()
    if word not in known:
        raise UsageError(f"no suite {word!r} (a file is given by its path, as ./{word}.toml): {nearest(word, known)}")
    return read_suite(known[word], known[word].name)


def expand(suite: Suite, words: Vocabulary, given: Values | None = None, ranks: Ranks | None = None) -> Expanded:
    """The requests of a suite, in its order.

    Args:
        suite: what the file says.
        words: the options.
        given: options of ``omb-py run``, by key: stronger than the suite's defaults, weaker than its entries.
        ranks: numbers of ranks.

    Raises:
        UsageError: a bad key or value: with file, line, key, what was expected and the nearest valid one.
    """
    return _Expansion(suite, words, given or {}, ranks or Ranks()).expanded()


class _Expansion:
    def __init__(self, suite: Suite, words: Vocabulary, given: Values, ranks: Ranks) -> None:
        self.suite, self.words, self.given, self.ranks = suite, words, given, ranks
        self.out = Expanded()

    def expanded(self) -> Expanded:
        told: list[Mapping[str, str]] = []
        seen: dict[str, int] = {}
        measured = [(entry, [b for n in entry.benchmarks if (b := self._find(n))]) for entry in self.suite.entries]
        self._check_shared([benchmark for _, benchmarks in measured for benchmark in benchmarks])
        for entry, benchmarks in measured:
            for benchmark in benchmarks:
                for checked, texts in self._requests(entry, benchmark):
                    alike = repr(replace(checked.request, part=None))
                    if alike in seen:
                        raise entry.error(f"{benchmark.name} with these options is in entry {seen[alike]} already")
                    seen[alike] = entry.number
                    self.out.checked.append(checked)
                    told.append(texts)
        self.out.checked = _with_differences(self.out.checked, told)
        return self.out

    def _find(self, named: Named) -> Benchmark | None:
        try:
            return find(named.name)
        except EnvironmentProblem as problem:
            self.out.skips.append(Skip(named.name, str(problem)))
            return None
        except UsageError:
            raise named.at.error(f"benchmark {named.name!r} {nearest_key(named.name, names())}") from None

    def _check_shared(self, benchmarks: Sequence[Benchmark]) -> None:
        """Every default and every option of the command line means something for some benchmark of the suite."""
        every: dict[str, Key] = {}
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

    def _requests(self, entry: Entry, benchmark: Benchmark) -> Iterator[tuple[CheckedRequest, Mapping[str, str]]]:
        """The requests of one benchmark of an entry, and the texts of their options; what cannot be had is skipped."""
        keys = self.words.keys(benchmark)
        counts = list(self._counts(entry, benchmark))
        for combination in product(*self._alternatives(entry, keys)):
            try:
                request = self.words.request(benchmark, {chosen.key: chosen.value for chosen in combination})
                checked = narrowed(replace(request, ranks=None), capabilities_of(request.backends))
                self.out.skips += (Skip(f"{benchmark.name} ({skip.what})", skip.reason) for skip in checked.skips)
            except UsageError as error:
                raise self._blame(error, combination, entry, benchmark) from None
            except EnvironmentProblem as problem:
                self.out.skips.append(Skip(benchmark.name, str(problem)))
                continue
            for chosen in combination:
                if chosen.at and chosen.value is not None and not keys[chosen.key].fits:
                    raise chosen.at.error(f"{benchmark.name} does not take it")
            texts = {chosen.key: chosen.text for chosen in combination if keys[chosen.key].scope == "cell"}
            part = Part(self.suite.name, self.suite.digest, entry.number)
            for count in counts:
                try:
                    check_fits(checked, count)
                except UsageError as error:
                    self.out.skips.append(Skip(benchmark.name, str(error)))
                    continue
                yield checked.changed(ranks=count, part=part), {"ranks": str(count), **texts}

    def _counts(self, entry: Entry, benchmark: Benchmark) -> Iterator[int]:
        """The numbers of ranks of a benchmark of an entry; one that the entry itself says must be admitted."""
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

    def _alternatives(self, entry: Entry, keys: Mapping[str, Key]) -> list[list[Chosen]]:
        """For each key that is given anywhere, its values of the strongest source."""
        found: dict[str, list[Chosen]] = {}
        for setting in self.suite.defaults:
            if setting.key in keys and keys[setting.key].fits:
                found[setting.key] = choose(setting, keys[setting.key])
        for name, value in self.given.items():
            if name in keys and keys[name].fits:
                found[name] = [Chosen(name, value, str(value))]
        for setting in entry.options:
            found[setting.key] = choose(setting, _key(setting, keys, ("cell",)))
        return list(found.values())

    def _blame(
        self, error: UsageError, combination: Sequence[Chosen], entry: Entry, benchmark: Benchmark
    ) -> UsageError:
        """The error, with the line of the key that is refused also without the others; else that of the entry."""
        for chosen in reversed(combination):
            try:
                alone = self.words.request(benchmark, {chosen.key: chosen.value})
                check(alone, capabilities_of(alone.backends))
            except UsageError as same:
                return chosen.at.error(str(same)) if chosen.at else same
            except EnvironmentProblem:
                continue
        return entry.error(f"{benchmark.name}: {error}")


def _key(setting: Setting, keys: Mapping[str, Key], scopes: Sequence[str]) -> Key:
    """The key of a setting. Raises UsageError where there is none, or not here."""
    key = keys.get(setting.key)
    if key is None:
        valid = {name for name, key in keys.items() if key.scope in scopes and key.fits} | {"ranks"}
        raise setting.error(nearest_key(setting.key, valid | ({"benchmarks"} if len(scopes) == 1 else set())))
    if key.scope not in scopes:
        raise setting.error(
            "holds for the whole suite: write it under [defaults]"
            if key.scope == "run"
            else f"is not for a suite: give --{key.name} to omb-py run"
        )
    return key


_SHOWN_ANYWAY = ("message-size", "type", "full", "tail-lat", "validation", "iterations", "warmup", "precision")
"""Options whose effect a table shows, or that do not change what is measured."""


def _with_differences(checked: Sequence[CheckedRequest], told: Sequence[Mapping[str, str]]) -> list[CheckedRequest]:
    """The requests, each with the options in which it differs from others of the same benchmark."""
    alike: dict[str, list[Mapping[str, str]]] = {}
    for each, texts in zip(checked, told, strict=True):
        alike.setdefault(each.request.benchmark, []).append(texts)
    out = []
    for each, own in zip(checked, told, strict=True):
        others = alike[each.request.benchmark]
        apart = {key: text for key, text in own.items() if any(texts.get(key) != text for texts in others)}
        varies = {key: text for key, text in apart.items() if key not in _SHOWN_ANYWAY}
        too = {key: text for key, text in apart.items() if key in _SHOWN_ANYWAY}
        assert each.request.part is not None
        out.append(each.changed(part=replace(each.request.part, varies=varies, varies_too=too)))
    return out
