"""Serving with continuous batching: requests come, get tokens and go (docs/workloads/inference.md)."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from omb_py.engine.program.dtypes import DTYPES
from omb_py.errors import UsageError
from omb_py.grammar.line_file import entries
from omb_py.suites.workloads import vocabulary
from omb_py.suites.workloads.calls import Call, Item, check_count, there_and_back
from omb_py.suites.workloads.model_parallel import divide_heads, layers
from omb_py.suites.workloads.settings import Values

POISSON: Final = "poisson"
PROMPT, TOKEN, MIXED = "prompt", "token", "prompt and token"
"""Labels of calls: with positions of prompts, with those of tokens that follow, and with both."""
Arrivals = tuple[tuple[float, int], ...]
"""(when a request arrives: its turn, or with a clock its second; tokens that it gets), in order of arrival."""
_SHARES: Final = (50, 99)
"""Percentiles of the latencies, as serving benchmarks report them."""


def inline_file(text: str) -> str:
    """`text` itself, or for ``@FILE`` with a line ``WHEN TOKENS`` for each request these as ``0 8;3 20``."""
    if not text.startswith("@"):
        return text
    lines = entries(Path(text[1:]), "trace of requests", "arrivals=@FILE")
    return ";".join(" ".join(body.replace(",", " ").split()) for _, body in lines)


def read_arrivals(text: str) -> Arrivals | None:
    """The requests of a text of :func:`inline_file`; None for ``poisson``. Raises UsageError."""
    if text == POISSON:
        return None
    try:
        requests = sorted((float(when), int(tokens)) for when, tokens in (part.split() for part in text.split(";")))
        if not all(0 <= when < math.inf and tokens > 0 for when, tokens in requests):
            raise ValueError
    except ValueError:
        raise UsageError(f"{text!r}: write poisson, or @FILE with a line WHEN TOKENS for each request") from None
    return tuple(requests)


def draw_arrivals(requests: int, rate: float, tokens: int, seed: int) -> Arrivals:
    """Arrivals of a Poisson process: gaps are exponential with mean 1 / `rate`.

    Args:
        requests: their number.
        rate: requests of a turn, or with a clock of a second, on average.
        tokens: tokens that are generated for each.
        seed: of the draw.
    """
    draw, at, arrivals = random.Random(seed), 0.0, []
    for _ in range(requests):
        at += draw.expovariate(rate)
        arrivals.append((at, tokens))
    return tuple(arrivals)


@dataclass(frozen=True, slots=True)
class Turn:
    """One pass through all layers."""

    begins: int
    """Requests that read their whole prompt."""
    goes_on: int
    """Requests that get tokens after their first."""
    chunk: int = 0
    """Positions of prompts that are read in parts, in the calls of the tokens."""
    ends: int = 0
    """Requests whose prompt ends in such a part."""


@dataclass(frozen=True, slots=True)
class Served:
    """What a request saw, as numbers of turns in which anything was done."""

    arrived: int
    """The first turn after its arrival."""
    first: int
    """The turn that gave its first token."""
    last: int
    """The turn that gave its last one."""
    tokens: int


@dataclass(slots=True)
class _Request:
    number: int
    unread: int
    left: float


def serve(
    arrivals: Sequence[tuple[int, int]], slots: int, prompt: int = 1, chunk: int = 0, gain: float = 1.0
) -> tuple[list[Turn], list[Served]]:
    """The turns in which anything is done, and what each request saw of them.

    A request begins in the first turn from its arrival on in which one of `slots` places is free. Its prompt is read in
    that turn, or with `chunk` in parts beside the tokens of others, at most so many positions a turn for all, in the
    order of arrival. The turn that ends it gives the first token, each later one `gain`; with the last it leaves its
    place (eviction).

    Args:
        arrivals: (turn, tokens) of each request, in order.
        slots: requests at once.
        prompt: positions of a prompt.
        chunk: positions of prompts in a turn; 0: all that begin are read whole.
        gain: tokens of a request and turn after the first.
    """
    waiting, active = list(enumerate(arrivals)), list[_Request]()
    turns, arrived, first, last = list[Turn](), dict[int, int](), dict[int, int](), dict[int, int]()
    now = 0
    while waiting or active:
        if not active:
            now = max(now, waiting[0][1][0])
        here = len(turns)
        for number, (arrival, _) in waiting:
            if arrival <= now:
                arrived.setdefault(number, here)
        joining = [entry for entry in waiting[: slots - len(active)] if entry[1][0] <= now]
        del waiting[: len(joining)]
        active += [_Request(number, prompt, tokens) for number, (_, tokens) in joining]
        budget = chunk or prompt * len(active)
        read = goes_on = ends = 0
        for request in active:
            if not request.unread:
                goes_on += 1
                request.left -= gain
                continue
            part = min(request.unread, budget - read)
            request.unread -= part
            read += part
            if not request.unread:
                first[request.number] = here
                request.left -= 1
                ends += 1
        last |= {request.number: here for request in active if request.left <= _NOTHING}
        active = [request for request in active if request.left > _NOTHING]
        turns.append(Turn(0, goes_on, read, ends) if chunk else Turn(ends, goes_on))
        now += 1
    seen = [Served(arrived[n], first[n], last[n], tokens) for n, (_, tokens) in enumerate(arrivals)]
    return turns, seen


_NOTHING: Final = 1e-9
"""Less of a token than this is left over by rounding."""


def tokens_of_turn(draft: int, accepted: float) -> float:
    """Tokens that a request gets in a turn on average: (1 − α^(k + 1)) / (1 − α) with a draft of k tokens.

    Each drafted token is accepted with the chance α if those before it were (Leviathan et al., ICML 2023, equation 1).
    """
    return sum(accepted**position for position in range(draft + 1))


def _list_turns(v: Values) -> tuple[list[Turn], list[Served]]:
    """The turns of a workload's settings. Raises UsageError for times that need a clock, or too many turns."""
    clock = v["turn"]
    if v["accepted"] > 1:
        raise UsageError(f"accepted {v['accepted']:g} is no chance: use a number up to 1")
    if v["arrivals"] is None:
        check_count({"requests": v["requests"]})
    arrivals: Arrivals = v["arrivals"] or draw_arrivals(v["requests"], v["rate"], v["tokens"], v["seed"])
    if not clock and v["arrivals"] and any(when % 1 for when, _ in arrivals):
        raise UsageError("arrivals at parts of a turn are seconds: say how long a turn takes, as turn=20ms")
    parts = -(-v["prompt"] // v["chunk"]) * len(arrivals) if v["chunk"] else 0
    check_count({"tokens": sum(tokens for _, tokens in arrivals) + parts, "layers": layers(v)})
    numbered = [(math.ceil(when / (clock or 1.0) - _NOTHING), tokens) for when, tokens in arrivals]
    return serve(numbered, v["slots"], v["prompt"], v["chunk"], tokens_of_turn(v["draft"], v["accepted"]))


def _requests_of(v: Values, turn: Turn) -> Iterator[tuple[str, int, int, int]]:
    """(label, requests, positions of each, those with logits) that a turn takes through the layers."""
    checked = 1 + v["draft"]
    if turn.chunk:
        yield MIXED, 1, turn.chunk + turn.goes_on * checked, turn.ends + turn.goes_on * checked
        return
    if turn.begins:
        yield PROMPT, turn.begins, v["prompt"], 1
    if turn.goes_on:
        yield TOKEN, turn.goes_on, checked, checked


def serving(v: Values, rank: int, ranks: int) -> list[Item]:
    """Each turn has two all-reduces a layer: of the prompts of requests that begin, and of a token of each other one.

    With ``fused=off`` each request has its own, and those of one turn may be in flight together. With ``chunk`` parts
    of prompts and tokens share a call; with ``draft`` a request has its drafted tokens checked, too; with ``head`` each
    turn adds up the embedding of its positions and gathers the logits of its tokens.
    """
    return [item for items in _passes(v, rank, ranks)[0] for item in items]


def _passes(v: Values, rank: int, ranks: int) -> tuple[list[list[Item]], list[Served]]:
    """Calls and products of each turn, and what each request saw. Raises UsageError for settings that do not fit."""
    group, shape = divide_heads(v, "tp", rank, ranks), v["model"].shape
    n = len(group)
    if v["chunk"] and v["fused"] == "off":
        raise UsageError("parts of prompts are read in the calls of others: leave out fused=off or chunk")
    item = shape.hidden * DTYPES[v["dtype"]].itemsize
    halves = (shape.projections + shape.output) / n, shape.feed_forward / n

    def through_layers(turn: Turn) -> list[Item]:
        items: list[Item] = []
        for label, count, positions, tokens in _requests_of(v, turn):
            parts = 1 if v["fused"] == "on" else count
            positions, tokens = count // parts * positions, count // parts * tokens
            call = Call("allreduce", positions * item, v["dtype"], label, group, until=parts - 1)
            layer: list[Item] = []
            for half in there_and_back(halves, positions)[0]:
                layer += [half, call] * parts
            whole = v["head"] == "on"
            items += vocabulary.embedding(v, group, positions, "embedding") * (parts * whole)
            items += layer * layers(v)
            items += vocabulary.logits(v, group, tokens) * (parts * (whole and tokens > 0))
        return items

    turns, seen = _list_turns(v)
    return [through_layers(turn) for turn in turns if n > 1], seen


def latencies(v: Values, ranks: int, times: Sequence[float]) -> dict[str, float]:
    """What communication adds until the first token (TTFT) and to each later one (TPOT), in µs: p50 and p99.

    Args:
        v: settings.
        ranks: their number.
        times: µs of each call of a rank, in order.
    """
    passes, seen = _passes(v, 0, ranks)
    left, spent = iter(times), [0.0]
    for items in passes:
        spent.append(spent[-1] + sum(islice(left, sum(isinstance(item, Call) for item in items))))
    first = [spent[request.first + 1] - spent[request.arrived] for request in seen]
    later = [
        (spent[request.last + 1] - spent[request.first + 1]) / (request.tokens - 1)
        for request in seen
        if request.tokens > 1
    ]
    return {
        f"{name}_p{share}_us": percentile(values, share)
        for name, values in (("ttft", first), ("tpot", later))
        if values
        for share in _SHARES
    }


def percentile(values: Sequence[float], share: int) -> float:
    """The smallest value that `share` per cent of the values do not exceed."""
    return sorted(values)[max(0, math.ceil(share / 100 * len(values)) - 1)]
