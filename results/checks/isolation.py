"""Which node, which switch or which link is slow, by collectives on groups of nodes: pure functions.

Each launch splits the nodes into groups of one size, which run a collective at once. A collective is as slow as its
slowest member, so a group is slow when it holds a slow node, or both ends of a slow link. Groups are compared within
their launch only, so what a whole launch, a night or another job does to all of them does not count. First groups lie
within switches, which judges the nodes; then they are halves of all switches, which judges what lies between.

Each outcome is read as one bit, slow or not, with the chances of a wrong one below; the rest is Bayes' rule, as in
group testing with errors (G. K. Atia and V. Saligrama, IEEE Trans. Inf. Theory 58, 2012).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from omb_py.results.checks.links import Floats, Ints, pair_ends

Group = tuple[int, ...]

LEAST = 4
"""Fewest nodes, and fewest switches, of which two groups can be compared."""
_LEAST_FOR_LINKS = 8
"""With fewer nodes, and no switches, a sweep over all pairs costs less than a search for a slow link."""
MOST_LAUNCHES = 34
"""Most launches of a search. With the first, which says where the ranks are, and five of a confirmation they are 40."""
SLOWER = 0.2
"""Part by which a group must be slower than the usual one of its launch to count as slow."""
MISSED, SLOW_BY_CHANCE = 0.1, 0.15
"""Chance that a slow group does not look slow, and that another one does."""
SURE = 200.0
"""Odds with which a node is named."""
SURE_BETWEEN, ENOUGH = 1000.0, 50.0
"""Odds with which the search for what lies between ends, and which are enough after its last launch: pairs confirm."""
_FEWEST = 6
"""Fewest launches of each half of a search."""
_USUAL = 0.3
"""The group of this rank among the times of a launch is the usual one: fewer than half may be slow."""
_MANY = 6
"""With so many groups a launch shows their noise."""
_SIGMA = 1.4826
"""Standard deviation over median absolute deviation of a normal distribution."""
_CANDIDATES = 16
"""Splits of which the most informative is taken."""


@dataclass(frozen=True, slots=True)
class Culprit:
    """What is slow: a node, the uplink of a switch, or what lies between two nodes or switches."""

    kind: Literal["node", "uplink", "link"]
    ends: tuple[int, ...]
    """The node or switch, or both ends; for a link these are switches where there are any, else nodes."""


@dataclass(frozen=True, slots=True)
class Split:
    """The groups of a launch."""

    groups: tuple[Group, ...]
    """Nodes of each compared group, all of one size."""
    rest: Group = ()
    """Nodes that are not compared in this launch: none, or two or more, which are a group of their own."""


@dataclass(slots=True)
class _Outcomes:
    of_item: list[Ints] = field(default_factory=list)
    """For each launch the number of the group of each item, or -1."""
    times: list[Floats] = field(default_factory=list)
    """For each launch logs of the times of its groups."""

    def _find_usual(self) -> Floats:
        """For each launch log of the time of its usual group."""
        return np.array([np.sort(times)[int(_USUAL * (len(times) - 1))] for times in self.times])

    def _subtract_usual(self) -> list[Floats]:
        """Logs of the time of each group over the usual one of its launch."""
        return [times - usual for times, usual in zip(self.times, self._find_usual(), strict=True)]

    @property
    def limit(self) -> float:
        """Log of the ratio from which a group counts as slow."""
        over = self._subtract_usual()
        off = [own - np.median(own) for own in over if len(own) >= _MANY]
        if not off:  # few groups show their noise together only
            few = np.concatenate([own for own in over if len(own) > 2] or [np.zeros(1)])
            off = [few - np.median(few)]
        # of many launches the usual one: in some of them another job may slow most groups
        spread = _SIGMA * float(np.median([np.median(np.abs(own)) for own in off]))
        return max(math.log1p(SLOWER), 3 * spread)

    def states(self) -> list[tuple[Ints, Ints]]:
        """For each launch that says anything the group of each item, and of each group 1: slow, 0: not, -1: unknown."""
        if not self.times:
            return []
        limit, states = self.limit, []
        for of_item, own, is_hidden in zip(self.of_item, self._subtract_usual(), self._find_hidden(), strict=True):
            slow = own > limit
            # a launch in which most are slow has no usual group: another job beside, or a bad draw for most
            if np.mean(slow) <= 0.5:
                states.append((of_item, np.where(slow, 1, -1 if is_hidden else 0)))
        return states

    def _find_hidden(self) -> NDArray[np.bool_]:
        """Whether a slow group may be hidden, for each launch: its few groups all took longer than in most launches.

        Another job that slows the healthy one of two groups makes them equal.
        """
        usual = self._find_usual()
        off = usual - np.median(usual)
        few = np.array([len(times) < _MANY for times in self.times], np.bool_)
        hidden: NDArray[np.bool_] = few & (off > max(math.log1p(SLOWER), _SIGMA * float(np.median(np.abs(off)))))
        return hidden


class Isolation:
    """A search for what is slow.

    Args:
        nodes: number of nodes.
        switches: nodes of each switch; empty: not known.
        seed: decides the groups.

    Raises:
        ValueError: there are too few nodes to compare two groups.
    """

    def __init__(self, nodes: int, switches: Sequence[Sequence[int]] = (), seed: int = 0) -> None:
        self.nodes = nodes
        self.switches = [tuple(own) for own in switches]
        self.launches = 0
        self._random = np.random.default_rng(seed)
        self._blocks = _blocks_of(self.switches, nodes)
        self._size = _size_of(self._blocks)
        """Nodes in a group within a block."""
        if not _are_comparable(self._blocks, self._size):
            self._blocks = [np.arange(nodes)]
            self._size = _size_of(self._blocks)
        if not _are_comparable(self._blocks, self._size):
            raise ValueError(f"{nodes} nodes make no two groups of two")
        self._within, self._across = _Outcomes(), _Outcomes()
        self._named: list[int] = []
        self._score: Floats = np.zeros(nodes)
        self._first_half = True
        items = len(self.switches) or nodes
        self._items = items if items >= (LEAST if self.switches else _LEAST_FOR_LINKS) else 0
        """Items of the second half: switches, or nodes; 0: too few to compare."""
        self._pairs = pair_ends(self._items) if self._items else (np.zeros(0, np.intp), np.zeros(0, np.intp))
        self._posterior = self._weigh()

    # -- launches ------------------------------------------------------------------------------------------------

    def next_split(self) -> Split | None:
        """The groups of the next launch; None when the search is over."""
        if self.launches >= MOST_LAUNCHES:
            return None
        if self._first_half and len(self._within.times) >= _FEWEST and not self._unsure().size:
            self._first_half = False
        if self._first_half:
            return self._split_within()
        if not self._items or (len(self._across.times) >= _FEWEST and _odds(self._posterior.max()) > SURE_BETWEEN):
            return None
        return self._split_across()

    def add(self, split: Split, times: Sequence[float]) -> None:
        """Take the time of each compared group, in any unit."""
        self.launches += 1
        half = self._within if self._first_half else self._across
        half.of_item.append(self._group_of_items(split))
        half.times.append(np.log(np.asarray(times, np.float64)))
        if self._first_half:
            self._name_nodes()
        else:
            self._posterior = self._weigh()

    def _split_within(self) -> Split:
        groups: list[Group] = []
        rest: list[int] = []
        for block in self._blocks:
            order = self._random.permutation(block).tolist()
            whole = len(order) // self._size * self._size
            groups += [tuple(sorted(order[k : k + self._size])) for k in range(0, whole, self._size)]
            rest += order[whole:]
        if len(rest) == 1:
            rest += groups.pop(int(self._random.integers(len(groups))))
        return Split(tuple(groups), tuple(sorted(rest)))

    def _split_across(self) -> Split:
        """Two halves of the switches, or of the nodes; nodes that are slow themselves rest."""
        of_item = max((self._draw_halves() for _ in range(_CANDIDATES)), key=self._count_information)
        healthy = [self._random.permutation([n for n in own if n not in self._named]) for own in self._list_items()]
        sizes = [sum(len(healthy[item]) for item in np.flatnonzero(of_item == k)) for k in (0, 1)]
        size = min(sizes)
        chosen = [_round_robin([healthy[item] for item in np.flatnonzero(of_item == k)], size) for k in (0, 1)]
        rest = list(set(range(self.nodes)) - {node for half in chosen for node in half})
        if len(rest) == 1:
            for half in chosen:  # one node alone is no group
                rest.append(half.pop())
        return Split(tuple(tuple(sorted(half)) for half in chosen), tuple(sorted(rest)))

    def _list_items(self) -> list[tuple[int, ...]]:
        return self.switches or [(node,) for node in range(self.nodes)]

    def _draw_halves(self) -> Ints:
        """The half of each item, drawn by chance; -1: none."""
        usable = [k for k, own in enumerate(self._list_items()) if any(node not in self._named for node in own)]
        order = self._random.permutation(usable)
        size = len(order) // 2
        of_item = np.full(self._items, -1, np.intp)
        of_item[order[: 2 * size]] = np.repeat((0, 1), size)
        return of_item

    def _count_information(self, of_item: Ints) -> float:
        """Entropy of which group is slow."""
        inside = self._groups_of_causes(of_item)
        mass = np.bincount(inside + 1, self._posterior, minlength=2)
        mass = mass[mass > 0]
        return -float(mass @ np.log(mass))

    def _group_of_items(self, split: Split) -> Ints:
        of_node = np.full(self.nodes, -1, np.intp)
        for k, group in enumerate(split.groups):
            of_node[list(group)] = k
        if self._first_half or not self.switches:
            return of_node
        return np.array([max(of_node[list(own)]) for own in self.switches], np.intp)

    # -- nodes -----------------------------------------------------------------------------------------------------

    def _name_nodes(self) -> None:
        """Name the likeliest node, then the likeliest of the rest without the outcomes that it explains, and so on."""
        self._named = []
        outcomes = self._within.states()
        blocks = np.empty(self.nodes, np.intp)
        for block in self._blocks:
            blocks[block] = len(block)
        shared = (self._size - 1) / np.maximum(blocks - 1, 1)
        chance = np.minimum(SLOW_BY_CHANCE + shared, 0.9)
        while True:
            self._score = np.zeros(self.nodes)
            for of_node, states in outcomes:
                explained = {int(of_node[node]) for node in self._named}
                state = states.copy()
                state[[k for k in explained if k >= 0]] = -1
                of_each = np.where(of_node >= 0, state[of_node], -1)
                self._score += np.where(of_each == 1, np.log((1 - MISSED) / chance), 0.0)
                self._score += np.where(of_each == 0, np.log(MISSED / (1 - chance)), 0.0)
            self._score[self._named] = -np.inf
            likeliest = int(np.argmax(self._score))
            if self._score[likeliest] < math.log(self.nodes * SURE) or len(self._named) > self.nodes // 4:
                return
            self._named.append(likeliest)

    def _unsure(self) -> Ints:
        return np.flatnonzero(self._score > math.log(self.nodes / SURE))

    # -- what lies between -----------------------------------------------------------------------------------------

    def _groups_of_causes(self, of_item: Ints) -> Ints:
        """The group that each cause makes slow, or -1: nothing, then each item, then each pair of items."""
        first, second = of_item[self._pairs[0]], of_item[self._pairs[1]]
        return np.concatenate([[-1], of_item[: self._items], np.where(first == second, first, -1)])

    def _weigh(self) -> Floats:
        """How likely each cause is, of which there is at most one."""
        pairs = len(self._pairs[0])
        prior = np.repeat([0.5, 0.25 / max(self._items, 1), 0.25 / max(pairs, 1)], [1, self._items, pairs])
        resting = np.array(
            [all(node in self._named for node in own) for own in self._list_items()[: self._items]], bool
        )
        gone = np.concatenate([[False], resting, resting[self._pairs[0]] | resting[self._pairs[1]]])
        weights = np.where(gone, -np.inf, np.log(prior))
        # of a group that is not slow, one that is, and one of which it is not known
        gains = np.array([math.log(MISSED / (1 - SLOW_BY_CHANCE)), math.log((1 - MISSED) / SLOW_BY_CHANCE), 0.0])
        for of_item, states in self._across.states():
            weights += np.append(gains[states], 0.0)[self._groups_of_causes(of_item)]
        likely: Floats = np.exp(weights - weights.max())
        likely /= likely.sum()
        return likely

    def _cause(self, number: int) -> Culprit:
        if number <= self._items:
            return Culprit("uplink" if self.switches else "node", (number - 1,))
        pair = number - 1 - self._items
        return Culprit("link", (int(self._pairs[0][pair]), int(self._pairs[1][pair])))

    # -- verdict ---------------------------------------------------------------------------------------------------

    @property
    def counted_from(self) -> float:
        """So many times the usual time made a group slow: less is noise in these launches."""
        return math.exp(max(self._within.limit, self._across.limit))

    @property
    def slow_nodes(self) -> list[int]:
        """The nodes that are slow themselves."""
        return sorted(self._named)

    @property
    def judges_links(self) -> bool:
        """Whether there is enough to compare what lies between switches, or nodes."""
        return self._items > 0

    @property
    def fewest_items(self) -> int:
        """So many switches, or nodes, are enough for that."""
        return LEAST if self.switches else _LEAST_FOR_LINKS

    @property
    def named(self) -> list[Culprit]:
        """What is slow."""
        culprits = [Culprit("node", (node,)) for node in sorted(self._named)]
        likeliest = int(np.argmax(self._posterior))
        if likeliest and _odds(self._posterior[likeliest]) > ENOUGH:
            culprits.append(self._cause(likeliest))
        return culprits

    @property
    def possible(self) -> list[Culprit]:
        """Of these at least one is probably slow, but the launches do not say which; the likeliest first."""
        if self._first_half:
            nodes = self._unsure()
            return [Culprit("node", (int(n),)) for n in nodes[np.argsort(-self._score[nodes])]]
        order = np.argsort(-self._posterior)
        if _odds(self._posterior[order[0]]) > ENOUGH or self._posterior[0] > 0.5:
            return []
        count = int(np.searchsorted(np.cumsum(self._posterior[order]), 0.99)) + 1
        return [self._cause(int(number)) for number in order[:count] if number]


def _odds(chance: float) -> float:
    return chance / max(1 - chance, np.finfo(float).tiny)


def _blocks_of(switches: Sequence[Sequence[int]], nodes: int) -> list[Ints]:
    """The nodes among which groups are drawn first: those of each switch, and those of small switches together.

    Fewer than :data:`LEAST` nodes are in a group with the same others too often to be told apart.
    """
    blocks = [list(own) for own in switches if len(own) >= LEAST]
    small = [node for own in switches if len(own) < LEAST for node in own]
    if len(small) < LEAST and blocks:
        min(blocks, key=len).extend(small)
    elif small:
        blocks.append(small)
    return [np.array(own, np.intp) for own in blocks] or [np.arange(nodes)]


def _size_of(blocks: Sequence[Ints]) -> int:
    """Nodes of a group: about the root of those of a block."""
    typical = float(np.median([len(block) for block in blocks]))
    fewest = max(2, min(len(block) for block in blocks))
    return min(fewest, max(2, 1 << int(math.log2(math.sqrt(typical)))))


def _are_comparable(blocks: Sequence[Ints], size: int) -> bool:
    """Whether the blocks make two groups or more; a node that is left alone takes a group along to rest."""
    groups = sum(len(block) // size for block in blocks)
    left = sum(map(len, blocks)) - groups * size
    return groups - (left == 1) >= 2


def _round_robin(of_items: Sequence[NDArray[np.intp]], size: int) -> list[int]:
    """So many nodes of several items, as evenly as they allow, so that each item is there."""
    queues = [list(map(int, own)) for own in of_items]
    chosen: list[int] = []
    while len(chosen) < size:
        for queue in queues:
            if queue and len(chosen) < size:
                chosen.append(queue.pop())
    return chosen
