"""Disaggregated inference: keys and values go from the ranks that read prompts to those that generate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from omb_py.engine.program.dtypes import DTYPES
from omb_py.engine.program.language import Message
from omb_py.errors import UsageError
from omb_py.suites.workloads.calls import EXCHANGE, NOTIFY, WRITE, Call, Item, Product, check_count
from omb_py.suites.workloads.grid import divides
from omb_py.suites.workloads.model_parallel import layers
from omb_py.suites.workloads.settings import Values

PIECES = ("layer", "page", "whole")
BY_WRITING = "write"
OPS = ("send", BY_WRITING)
KEYS, VALUES = 1, 2
"""Tags of the messages with keys and with values; what is sent whole has the first."""
_NOTIFICATION = 8
"""Bytes that tell a rank that all of a sender's writes are there."""


@dataclass(frozen=True, slots=True)
class Instances:
    """So many instances of a model, each divided over `tp` ranks by heads; the ranks are numbered from `first` on."""

    count: int
    tp: int
    first: int
    heads: int
    """Heads of keys and values in all."""

    def holders(self, instance: int) -> list[tuple[int, range]]:
        """(rank, the heads that it holds): a part of them, or one head that several ranks hold."""
        start = self.first + instance * self.tp
        if self.tp <= self.heads:
            each = self.heads // self.tp
            return [(start + i, range(i * each, (i + 1) * each)) for i in range(self.tp)]
        return [(start + i, range(head, head + 1)) for i in range(self.tp) for head in (i * self.heads // self.tp,)]


def sides(v: Values, ranks: int) -> tuple[Instances, Instances]:
    """Those that read prompts and those that generate. Raises UsageError where they are not all ranks."""
    model = v["model"]
    heads = model.shape.kv_heads or model.shape.heads
    reading = v["prefill"] * v["prefill_tp"]
    decode = v["decode"] or max(1, (ranks - reading) // v["decode_tp"])
    needed = reading + decode * v["decode_tp"]
    if needed != ranks:
        text = f"prefill {v['prefill']} × tp {v['prefill_tp']} + decode {decode} × tp {v['decode_tp']}"
        raise UsageError(f"{text} = {needed} ranks, not {ranks}: use -n {needed}")
    for key in ("prefill_tp", "decode_tp"):
        if v[key] <= heads:
            divides(f"{model.name}: heads of keys and values", heads, key, v[key])
        else:
            divides(key, v[key], f"{model.name}: heads of keys and values", heads)
    return (Instances(v["prefill"], v["prefill_tp"], 0, heads), Instances(decode, v["decode_tp"], reading, heads))


def shares(source: Instances, target: Instances, request: int) -> Iterator[tuple[int, int, int]]:
    """(sender, receiver, heads) of a request; instances take turns. Each receiver gets each of its heads once."""
    senders = source.holders(request % source.count)
    for place, (receiver, wanted) in enumerate(target.holders(request % target.count)):
        left = set(wanted)
        # of several ranks that hold a head, receivers ask different ones
        for sender, held in [*senders[place % len(senders) :], *senders[: place % len(senders)]]:
            common = left & set(held)
            if common:
                left -= common
                yield sender, receiver, len(common)


def kv_transfer(v: Values, rank: int, ranks: int) -> list[Item]:
    """Each request's keys and values go from the ranks that read its prompt to those that generate, by heads.

    With ``pieces=layer`` those of a layer go as soon as it is computed, beside the computing of the next one; pages
    (vLLM's blocks) go as messages of their own, keys and values apart; ``whole`` sends everything after the prompt.
    With ``op=write`` they are written into the memory of the other rank, which gets one notification at the end.
    """
    source, target = sides(v, ranks)
    shape, item = v["model"].shape, DTYPES[v["dtype"]].itemsize
    if v["pieces"] == "page":
        check_count({"layers": layers(v), "requests": v["requests"], "pages": -(-v["prompt"] // v["page"])})
    a_head = shape.hidden // shape.heads * item
    pairs = [share for request in range(v["requests"]) for share in shares(source, target, request)]

    def messages(mine: int, other: int) -> tuple[Message, ...]:
        """Messages of a call at one end: place `mine` of a pair is this rank, place `other` its peer."""
        ends = [(pair[other], pair[2] * a_head) for pair in pairs if pair[mine] == rank]
        if v["pieces"] == "whole":
            return tuple(Message(peer, 2 * layers(v) * v["prompt"] * width, KEYS) for peer, width in ends)
        tokens = [v["prompt"]] if v["pieces"] == "layer" else pages(v["prompt"], v["page"])
        return tuple(Message(peer, n * width, tag) for peer, width in ends for n in tokens for tag in (KEYS, VALUES))

    sends, receives = (messages(0, 1), ()) if rank < target.first else ((), messages(1, 0))
    calls = 1 if v["pieces"] == "whole" else layers(v)
    if not sends and not receives:
        return []
    product = Product(shape.layer * layers(v) / calls / source.tp, v["prompt"] * v["requests"])
    if v["op"] == BY_WRITING:
        told, telling = (
            [Message(peer, _NOTIFICATION) for peer in dict.fromkeys(message.peer for message in ends)]
            for ends in (receives, sends)
        )
        if receives:
            return [Call(NOTIFY, 0, v["dtype"], "arrive", receives=tuple(told), written=receives * calls, until=None)]
        write = Call(WRITE, 0, v["dtype"], "write", sends=sends, until=None)
        writes: list[Item] = [product, write] * calls
        return [*writes, Call(NOTIFY, 0, v["dtype"], "notify", sends=tuple(telling), work=0.0)]
    if receives:
        return [Call(EXCHANGE, 0, v["dtype"], "receive", receives=receives, until=None)] * calls
    return [product, Call(EXCHANGE, 0, v["dtype"], "send", sends=sends, until=None)] * calls


def pages(tokens: int, page: int) -> list[int]:
    """Tokens of each page; the last one may hold fewer."""
    return [min(page, tokens - start) for start in range(0, tokens, page)]
