"""The text that configures the simulation: ``alpha=1us,beta=0.1ns,noise=0.05,hang=2:8:17`` (docs/mock.md)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final

from omb_py.backends.mock.algorithms import FORM, Algorithm, read_algorithm
from omb_py.backends.mock.faults import Fault
from omb_py.errors import UsageError
from omb_py.grammar.key_values import Key, KeyValues
from omb_py.grammar.values import pair_of, parse_nanoseconds, parse_number, parse_size, parse_whole, parse_word


@dataclass(frozen=True, slots=True)
class Config:
    """Costs and faults of a simulated machine. Times in nanoseconds."""

    alpha: float = 1000.0
    """Start-up time of a message, ns."""
    beta: float = 0.1
    """Time per byte, ns."""
    gflops: float = 50.0
    """Floating point operations of a matrix product, 10⁹ a second."""
    noise: float = 0.0
    """Standard deviation of the logarithm of each operation's time."""
    launch: float = 0.0
    """Standard deviation of the logarithm of a factor that all operations of a launch share."""
    spike: tuple[float, float] = (0.0, 1.0)
    """(share, factor): this share of the operations takes `factor` times as long."""
    drift: float = 0.0
    """Each launch is slower than the one before by this share."""
    straggler: tuple[tuple[int, float], ...] = ()
    """(rank, ns): added to each timed collective call of the rank."""
    slow: tuple[tuple[int, float], ...] = ()
    """(rank, factor): messages from and to the rank, and collectives with it, take so many times as long."""
    link: tuple[tuple[int, int, float], ...] = ()
    """(rank, rank, factor): messages between the two, and collectives with both, take so many times as long."""
    uplink: tuple[tuple[int, int, float], ...] = ()
    """(first rank, last rank, factor): what goes between these ranks and the others takes so many times as long."""
    series: tuple[tuple[float, ...], ...] = ()
    """Times in ns of timed operations by iteration: one list for all ranks, or one a rank."""
    nodes: int = 1
    between: tuple[float, float] | None = None
    """Start-up time and time per byte of a message between nodes, ns; None: `alpha` and `beta`."""
    nics: int = 0
    """NICs of a node that its ranks share; 0: one for each rank."""
    channels: int = 0
    """Memory channels of a node, which messages within it share; 0: one for each rank."""
    eager: int = 65536
    """Largest message in bytes that does not wait for its receive."""
    algorithm: tuple[Algorithm, ...] = ()
    """Algorithms of collectives with planted costs; the first is the library's default."""
    version: str = "1.0"
    data: str = "auto"
    """Whether bytes are moved: ``on``, ``off``, ``auto``."""
    flip: tuple[Fault, ...] = ()
    hang: tuple[Fault, ...] = ()
    die: tuple[Fault, ...] = ()

    def ranks_named(self) -> tuple[int, ...]:
        """All ranks that appear in the settings."""
        faults = tuple(f.rank for f in (*self.flip, *self.hang, *self.die))
        ends = tuple(rank for a, b, _ in (*self.link, *self.uplink) for rank in (a, b))
        return faults + tuple(rank for rank, _ in (*self.straggler, *self.slow)) + ends


def parse(text: str) -> Config:
    """Read a configuration.

    Args:
        text: ``KEY=VALUE`` separated by commas; "" for the default machine. `algorithm`, `flip`, `hang`, `die`,
            `straggler`, `slow`, `link` and `uplink` may come several times.

    Raises:
        UsageError: an unknown key (with the nearest one), a key given twice, or a bad value (with the rule).
    """
    return Config(**_GRAMMAR.read(text))


def _parse_above(text: str, bound: float) -> float:
    value = parse_number(text, bound)
    if value == bound:
        raise UsageError(f"{text!r} is not above {bound:g}")
    return value


def _spike(text: str) -> tuple[float, float]:
    share, _, factor = text.partition(":")
    return parse_number(share, most=1), parse_number(factor)


def _straggler(text: str) -> tuple[int, float]:
    rank, _, delay = text.partition(":")
    return parse_whole(rank), parse_nanoseconds(delay)


def _slow(text: str) -> tuple[int, float]:
    rank, _, factor = text.partition(":")
    return parse_whole(rank), _parse_above(factor, 0)


def _link(text: str) -> tuple[int, int, float]:
    ends, _, factor = text.partition(":")
    ranks = pair_of(ends, "-")
    if ranks is None or ranks[0] == ranks[1]:
        raise UsageError(f"{ends!r} are not two ranks")
    return *ranks, _parse_above(factor, 0)


def _uplink(text: str) -> tuple[int, int, float]:
    ranks, _, factor = text.partition(":")
    ends = pair_of(ranks, "-")
    if ends is None or ends[0] > ends[1]:
        raise UsageError(f"{ranks!r} are not the first and the last of some ranks")
    return *ends, _parse_above(factor, 0)


def _series(text: str) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(map(parse_nanoseconds, row.split("/"))) for row in text.split(":"))


def _parse_cost(text: str) -> tuple[float, float]:
    alpha, _, beta = text.partition(":")
    return parse_nanoseconds(alpha), parse_nanoseconds(beta)


def _fault(text: str) -> Fault:
    rank, *rest = text.split(":")
    if len(rest) > 2:
        raise UsageError(f"{text!r} has more than three parts")
    size, iteration = (*rest, "", "")[:2]
    return Fault(parse_whole(rank), parse_size(size) if size else None, parse_whole(iteration) if iteration else None)


_FAULT: Final = Key(_fault, form="RANK[:SIZE[:ITERATION]], as 2:8:17 or 2::17", repeats=True)
_GRAMMAR: Final = KeyValues(
    {
        "alpha": Key(parse_nanoseconds, form="TIME, as 1us"),
        "beta": Key(parse_nanoseconds, form="TIME for a byte, as 0.1ns"),
        "gflops": Key(partial(_parse_above, bound=0), form="NUMBER above 0, as 50"),
        "noise": Key(parse_number, form="NUMBER of 0 or more, as 0.05"),
        "launch": Key(parse_number, form="NUMBER of 0 or more, as 0.1"),
        "spike": Key(_spike, form="SHARE:FACTOR, as 0.03:10"),
        "drift": Key(partial(_parse_above, bound=-1), form="SHARE a launch, as 0.01"),
        "straggler": Key(_straggler, form="RANK:TIME, as 3:2us", repeats=True),
        "slow": Key(_slow, form="RANK:FACTOR above 0, as 3:1.06", repeats=True),
        "link": Key(_link, form="RANK-RANK:FACTOR above 0, as 2-5:3", repeats=True),
        "uplink": Key(_uplink, form="RANK-RANK:FACTOR above 0, from low to high, as 0-3:2", repeats=True),
        "series": Key(_series, form="TIME/TIME/…, one list or one a rank with ':' between, as 10us/12us:20us/22us"),
        "nodes": Key(partial(parse_whole, least=1), form="COUNT of 1 or more"),
        "between": Key(_parse_cost, form="ALPHA:BETA, as 5us:0.4ns"),
        "nics": Key(parse_whole, form="COUNT of 0 or more"),
        "channels": Key(parse_whole, form="COUNT of 0 or more"),
        "eager": Key(parse_size, form="BYTES, as 64K"),
        "algorithm": Key(read_algorithm, form=FORM, repeats=True),
        "version": Key(str, form="TEXT, as 1.0"),
        "data": Key(partial(parse_word, words=("on", "off", "auto")), form="on|off|auto"),
        "flip": _FAULT,
        "hang": _FAULT,
        "die": _FAULT,
    },
    prefix="mock: ",
    missing="{key} needs a value, {key}={form}",
    malformed="{key}={value!r} is not of the form {key}={form}",
    meant={"latency": "alpha", "bandwidth": "beta"},
)
