"""One line for each way a launch can fail: which rank, on which host, doing what, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence

from omb_py.launchers.registry import launcher_titled
from omb_py.orchestrate.supervision import launcher_output
from omb_py.orchestrate.supervision.rank_state import RankState, behind, doing, names, numbers, position

_DOCTOR = "omb-py doctor says what this machine can launch"
_REACH = "check the names of the hosts, and that ssh HOST true works from here to each without a password"
_RAISE_IT = "or raise --timeout if one step may take that long"
_PASSING = ("listener thread failed to start",)
"""Launcher messages about passing conditions. Open MPI 5: a network interface came or went while it listed them."""


def passes_by_itself(states: Sequence[RankState], output: str) -> bool:
    """Whether a launcher that ended may start the same ranks the next time. `states` are those of ranks that began."""
    # join the words, because the launcher breaks long lines anywhere
    return not states and any(words in " ".join(output.split()) for words in _PASSING)


def died(first: Sequence[RankState], states: Sequence[RankState], ranks: int, output: str) -> str:
    """Text for rank processes that ended too early.

    Args:
        first: ranks whose connections closed first, in that order.
        states: all ranks that have reported.
        ranks: number of ranks that were started.
        output: text that the launcher printed.
    """
    named = _guilty(first, states, output)
    state = min(named, key=position)
    why = launcher_output.cause(state, output) or (launcher_output.only_cause(output) if len(first) > 1 else "")
    report = "" if why else launcher_output.first_report(output)
    ended = f"died ({why})" if why else "died"
    when = "before the launch was done"
    if len(states) < ranks:
        # A rank that never reported may have died before, and the launcher then ended this one.
        when = f"when {len(states)} of {ranks} ranks had reported{_missing(states, ranks, 'had not')}"
    when += f"; the launcher reports {report}" if report else ""
    advice = launcher_output.advice(why or report, state.host)
    return f"{names(named)} {ended} {when}; last seen in: {doing(state)}. What to do: {advice}"


def _guilty(first: Sequence[RankState], states: Sequence[RankState], output: str) -> Sequence[RankState]:
    reported = [(state, launcher_output.about(state, output)) for state in states]
    sure = [state for state, report in reported if report and report.first]
    if sure:
        return sure
    # Launchers kill the remaining ranks, and some then report one of these: SIGKILL alone accuses nobody.
    crashed = [state for state, report in reported if report and state in first and "SIGKILL" not in report.how]
    return crashed or first[:1]


def _missing(states: Sequence[RankState], ranks: int, verb: str) -> str:
    known = {state.number for state in states if state.number is not None}
    missing = set(range(ranks)) - known
    return f" ({numbers(missing)} {verb})" if states and missing and len(known) == len(states) else ""


def launcher_ended(launcher: str, status: int, states: Sequence[RankState], ranks: int, lines: Sequence[str]) -> str:
    """Text for a launcher that ended before its ranks were done.

    Args:
        launcher: its name.
        status: its exit status as subprocess gives it.
        states: all ranks that have reported.
        ranks: number of ranks that were started.
        lines: the last lines of its output.
    """
    how = launcher_output.how_ended(status)
    present = f"{len(states)} of {ranks} ranks"
    if status < 0:
        return (
            f"the launcher {launcher} {how} with {present} present. "
            "What to do: find out who killed it (a job limit, short memory, a person), then start again"
        )
    parts = (launcher_output.first_report("\n".join(lines)), launcher_output.last_words(lines))
    words = "; it said: " + "; ".join(part for part in parts if part) if any(parts) else ""
    if len(states) < ranks:
        titled = launcher_titled(launcher)
        todo = (titled.start_fix if titled else "") or _DOCTOR
        todo = _REACH if launcher_output.unreached(lines) else todo
        return f"the launcher {launcher} {how} when {present} had reported{words}. What to do: {todo}"
    state = min(states, key=position)
    return f"the launcher {launcher} {how} before {state.name} was done, last seen in: {doing(state)}{words}"


def absent(states: Sequence[RankState], ranks: int, timeout: float, address: str, lines: Sequence[str]) -> str:
    """Text for a launch of which no rank reported for `timeout` seconds; `lines` end the launcher's output."""
    last = launcher_output.last_words(lines)
    words = f"; the launcher said: {last}" if last else ""
    return (
        f"{len(states)} of {ranks} ranks reported{_missing(states, ranks, 'did not')}, and no other for "
        f"{timeout:g} s{words}. "
        "What to do: check that every host can start Python with omb-py and reach this one by TCP "
        f"({address.split(',')[0]}), or raise --timeout"
    )


def silent(states: Sequence[RankState], now: float) -> str:
    """Text for ranks that send nothing any more; `now` in seconds on the supervisor's clock."""
    state = min(states, key=position)
    longest = max(now - other.seen for other in states)
    return (
        f"{names(states)} sent no sign of life for {longest:.1f} s (stopped, or its node is gone); "
        f"last seen in: {doing(state)}. What to do: look at that process and at {state.host}, {_RAISE_IT}"
    )


def stuck(states: Sequence[RankState], timeout: float) -> str:
    """Text for a launch in which all ranks send heartbeats and none has made progress for `timeout` seconds."""
    late = behind(states)
    if len(late) < len(states):
        which = ("is" if len(late) == 1 else "are") + " behind the others, at"
    elif len(late) == 1:
        which = "is at"
    else:
        which = "and so all ranks are at the same place"
    return (
        f"no rank made progress for {timeout:g} s; {names(late)} {which}: {doing(late[0])}. "
        f"What to do: look at {late[0].host} and its links, {_RAISE_IT}"
    )


def apart(states: Sequence[RankState], ranks: int, launcher: str) -> str:
    """Text for ranks that see worlds of another size than the launcher started."""
    sizes = sorted({state.size for state in states if state.size is not None})
    if sizes == [1]:
        seen = f"{len(states)} processes each see 1 rank"
    else:
        seen = f"{ranks} were started, they see a world of {' or '.join(map(str, sizes))}"
    return f"ranks did not join one world: {seen}: {join_hint(launcher)}"


def join_hint(launcher: str) -> str:
    """Why processes of a launcher see no common world, and what to do."""
    titled = launcher_titled(launcher)
    if titled and titled.join_fix:
        return titled.join_fix
    return (
        f"the launcher ({launcher}) and the MPI library do not belong together. What to do: use the mpiexec of the MPI "
        "library that mpi4py loads (omb-py doctor names both)"
    )


def too_many(ranks: int, launcher: str) -> str:
    """Text for more rank processes than were asked for."""
    return f"{launcher} started more than {ranks} rank processes: leave the rank count to -n, not to --launcher-args"
