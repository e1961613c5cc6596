"""Texts of ``omb-py workloads``: the families, and the calls of a workload with formula and source."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill

from omb_py.engine.program.step_text import among
from omb_py.suites.workloads.calls import OF_MESSAGES, SERVE, Call
from omb_py.suites.workloads.families import FAMILIES, FLOP_SOURCE, Workload

WIDTH = 120
_SHOWN = 40
"""Most lines of calls; equal calls that follow each other share a line."""


def listing() -> str:
    """List all families, one a line."""
    width = max(map(len, FAMILIES))
    lines = [
        fill(f"{name:<{width}}  {family.summary}", WIDTH, subsequent_indent=" " * (width + 2))
        for name, family in FAMILIES.items()
    ]
    return "\n".join([*lines, "", "omb-py workloads NAME shows settings and calls; omb-py step --workload measures"])


def describe_call(call: Call) -> str:
    """Describe a call in one line."""
    where = f", among ranks {among(call.group)}" if call.group else ""
    calls = "call" if call.until == 1 else f"{call.until} calls"
    waits = {0: "", None: ", may overlap the rest of the step"}.get(call.until, f", may overlap up to the next {calls}")
    if call.op == SERVE:
        taken, answer = call.receives[0].nbytes, call.sends[0].nbytes
        workers = among([message.peer for message in call.receives])
        return (
            f"{call.label}: {taken} B from each of {workers} in the order in which they come, {answer} B back at once"
        )
    if call.op in OF_MESSAGES:
        ways = {"to": call.sends, "from": call.receives, "written by": call.written}
        ends = [f"{m.nbytes} B {way} {m.peer}" for way, messages in ways.items() for m in messages]
        return f"{call.label}: {', '.join(ends[:4])}{', …' if len(ends) > 4 else ''}{waits}"
    root = f" root {call.root}" if call.op in ("bcast", "gather", "scatter", "reduce") else ""
    return f"{call.label}: {call.op.removesuffix('_block')} {call.sent} B {call.dtype}{root}{where}{waits}"


def computing(formula: str, calls: Sequence[Call], rank: int) -> list[str]:
    """Describe the matrix products of ``compute=matmul``: their sum for a rank, the formula and its source."""
    shapes = [product.shape for call in calls for product in (*call.before, *call.after)]
    flop, count = sum(call.flop for call in calls), sum(times for *_, times in shapes)
    summary = f"compute=matmul: rank {rank} does {flop / 1e9:.4g} GFLOP a step in {count} products"
    if shapes:
        rows, side, _ = max(shapes, key=lambda shape: shape[0] * shape[1] ** 2)
        summary += f" (T × k)·(k × k) with k² = P, the largest ({rows} × {side})·({side} × {side})"
    return [fill(summary, WIDTH), fill(f"  FLOP: {formula}", WIDTH), fill(f"  source: {FLOP_SOURCE}", WIDTH)]


def described(workload: Workload, ranks: int, rank: int) -> str:
    """Describe settings, formula, source and the calls of a rank. Raises UsageError where the ranks do not fit."""
    family, calls = workload.family, workload.calls(rank, ranks)
    width = max(map(len, family.keys))
    lines = [f"{workload.text}: {family.summary}", "", "settings (default):"]
    for key, setting in family.keys.items():
        text = f"  {key:<{width}}  {setting.about} ({setting.default or 'none'})"
        lines.append(fill(text, WIDTH, subsequent_indent=" " * (width + 4)))
    lines += ["", fill(f"formula: {family.formula}", WIDTH), fill(f"source:  {family.source}", WIDTH), ""]
    model = workload.values.get("model")
    if model is not None:
        lines += [f"{model.name}: {model.parameters} parameters in {len(model.tensors)} tensors; {model.source}", ""]
    if family.flop:
        lines += [*computing(family.flop, calls, rank), ""]
    payload = sum(call.sent for call in calls)
    lines.append(f"calls of rank {rank} of {ranks} in a step: {len(calls)}, with a payload of {payload} B")
    runs: list[tuple[int, str]] = []
    for call in calls:
        text = describe_call(call)
        runs = [*runs[:-1], (runs[-1][0] + 1, text)] if runs and runs[-1][1] == text else [*runs, (1, text)]
    lines += [f"  {f'{count} × ' if count > 1 else ''}{text}" for count, text in runs[:_SHOWN]]
    if len(runs) > _SHOWN:
        lines.append(f"  … and {len(runs) - _SHOWN} more lines: --format json has all")
    return "\n".join(lines)


def as_json(workload: Workload, ranks: int, rank: int) -> dict[str, object]:
    """Return the calls of a rank as plain data. Raises UsageError where the ranks do not fit."""

    def plain(call: Call) -> dict[str, object]:
        data = {name: getattr(call, name) for name in ("op", "label", "dtype", "work", "until")}
        data |= {"flop": call.flop, "bytes": call.sent, "group": list(call.group), "root": call.root}
        for name in ("sends", "receives", "written"):
            data[name] = [{"peer": m.peer, "bytes": m.nbytes, "tag": m.tag} for m in getattr(call, name)]
        return {**data, "out": list(call.out), "back": list(call.back)}

    return {
        "workload": workload.text,
        "formula": workload.family.formula,
        "source": workload.family.source,
        "flop": workload.family.flop,
        "ranks": ranks,
        "rank": rank,
        "calls": [plain(call) for call in workload.calls(rank, ranks)],
    }
