"""What ends a command of many launches, Ctrl-C or a full disk: the message says what is kept and how to go on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from omb_py.errors import EnvironmentProblem, Interrupted
from omb_py.orchestrate.running.collector import Run
from omb_py.orchestrate.running.lost_nodes import NodesLost


class InterruptedLaunches(Interrupted):
    """The user pressed Ctrl-C in a command that makes many launches."""

    def __init__(self, cause: str, kept: str) -> None:
        super().__init__(f"{cause}: {kept}" if kept else cause)
        self.cause = cause
        """The message without what is kept."""


@contextmanager
def resumable(
    kept: Callable[[], str], run: Run | None = None, resumes: Callable[[], bool] = lambda: False
) -> Iterator[None]:
    """Turn Ctrl-C, within a launch or between two, into one error; of nested commands the outermost says what is kept.

    A problem of the environment, such as a full disk, ends a run early too: it is marked, and the error says how it
    goes on. Where nodes are lost, another run begins on those that are left.

    Args:
        kept: returns what is kept and how to go on; empty where there is nothing to say.
        run: what is interrupted then.
        resumes: whether the option ``--resume`` of the command can continue this run then.

    Raises:
        InterruptedLaunches: the user pressed Ctrl-C.
    """

    def continued() -> str:
        return run.run_id if run is not None and resumes() and run.lock is not None else ""

    try:
        yield
    except (Interrupted, KeyboardInterrupt) as error:  # Ctrl-C may come between two launches
        cause = error.cause if isinstance(error, InterruptedLaunches) else str(error) or "interrupted"
        interrupted = InterruptedLaunches(cause, kept())
        if run is not None:
            run.ended_early("interrupted")
            interrupted.of_run(continued())
        raise interrupted from None
    except NodesLost:
        raise
    except EnvironmentProblem as error:
        if run is not None:
            run.ended_early("failed")
        error.of_run(error.resumes or continued())
        raise


def kept_text(run: Run, measured: bool, resumes: bool = False) -> str:
    """Where the finished cells of a run are, and how it goes on.

    Args:
        measured: whether any cell was finished.
        resumes: whether the command has the option ``--resume``.
    """
    if not measured:
        return "nothing was measured"
    if run.request.store is None or run.request.printing.scratch:
        return "nothing is stored, because of --no-store"
    how = f"; --resume={run.run_id} measures the rest" if resumes else ""
    return f"what was measured is kept in {run.request.store}, run {run.run_id}{how}"
