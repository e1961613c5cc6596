"""What went wrong in a launch, as one line: who, where, doing what, and what to do about it. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

from omb_py.orchestrate import lastwords
from omb_py.orchestrate.ranks import RankState, behind, doing, names, numbers, position

_RAISE_IT = "or raise --timeout if one step may take that long"


def died(first: Sequence[RankState], output: str) -> str:
    """Rank processes ended too early.

    Args:
        first: those that ended first; several when one turn of the loop saw them together.
        output: what the launcher printed.
    """
    # Of several, believe the launcher if it names some of them.
    named = [state for state in first if lastwords.cause(state, output)] or list(first)
    state = min(named, key=position)
    why = lastwords.cause(state, output)
    ended = f"died ({why})" if why else "died"
    return (
        f"{names(named)} {ended} before the launch was done; last seen in: {doing(state)}. "
        f"What to do: {lastwords.advice(why, state.host)}"
    )


def launcher_ended(launcher: str, status: int, states: Sequence[RankState], ranks: int, said: str) -> str:
    """The launcher ended before its ranks were done. `status` as subprocess gives it."""
    how = lastwords.how_ended(status)
    came = f"{len(states)} of {ranks} ranks"
    if status < 0:
        return (
            f"the launcher {launcher} {how} with {came} present. "
            "What to do: find out who killed it (a job limit, short memory, a person), then start again"
        )
    words = f"; it said: {said}" if said else ""
    if len(states) < ranks:
        return (
            f"the launcher {launcher} {how} when {came} had reported{words}. "
            "What to do: omb-py doctor says what this machine can launch"
        )
    state = min(states, key=position)
    return f"the launcher {launcher} {how} before {state.name} was done, last seen in: {doing(state)}{words}"


def absent(states: Sequence[RankState], ranks: int, timeout: float, address: str, said: str) -> str:
    """Not all ranks reported in time."""
    came = [state.number for state in states]
    known = {number for number in came if number is not None}
    missing = set(range(ranks)) - known
    who = f" ({numbers(missing)} did not)" if came and len(known) == len(came) else ""
    words = f"; the launcher said: {said}" if said else ""
    return (
        f"{len(came)} of {ranks} ranks reported within {timeout:g} s{who}{words}. "
        "What to do: check that every host can start Python with omb-py and reach this one by TCP "
        f"({address.split(',')[0]}), or raise --timeout"
    )


def silent(dumb: Sequence[RankState], now: float) -> str:
    """Ranks send nothing any more."""
    state = min(dumb, key=position)
    longest = max(now - other.seen for other in dumb)
    return (
        f"{names(dumb)} sent no sign of life for {longest:.1f} s (stopped, or its node is gone); "
        f"last seen in: {doing(state)}. What to do: look at that process and at {state.host}, {_RAISE_IT}"
    )


def stuck(states: Sequence[RankState], timeout: float) -> str:
    """All ranks give signs of life and none moves on."""
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
    """The ranks see worlds of another size than was started."""
    sizes = sorted({state.size for state in states if state.size is not None})
    if sizes == [1]:
        seen = f"{len(states)} processes each see 1 rank"
    else:
        seen = f"{ranks} were started, they see a world of {' or '.join(map(str, sizes))}"
    return (
        f"ranks did not join one world: {seen}: the launcher ({launcher}) and the MPI library do not "
        "belong together. What to do: use the mpiexec of the MPI library that mpi4py loads (omb-py doctor names "
        "both), or under Slurm the right --mpi type (srun --mpi=list)"
    )


def too_many(ranks: int, launcher: str) -> str:
    """More processes came than were asked for."""
    return f"{launcher} started more than {ranks} rank processes: leave the rank count to -n, not to --launcher-args"
