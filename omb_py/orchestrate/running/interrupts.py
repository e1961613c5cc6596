"""Ctrl-C in commands that make many launches: wherever it comes, the message says what is kept and how to go on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from omb_py.errors import Interrupted
from omb_py.orchestrate.running.collector import Run


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

    Args:
        kept: returns what is kept and how to go on; empty where there is nothing to say.
        run: what is interrupted then.
        resumes: whether the option ``--resume`` of the command can continue this run then.

    Raises:
        InterruptedLaunches: the user pressed Ctrl-C.
    """
    try:
        yield
    except (Interrupted, KeyboardInterrupt) as error:  # Ctrl-C may come between two launches
        cause = error.cause if isinstance(error, InterruptedLaunches) else str(error) or "interrupted"
        interrupted = InterruptedLaunches(cause, kept())
        if run is not None:
            run.ended_early("interrupted")
            interrupted.of_run(run.run_id if resumes() and run.lock is not None else "")
        raise interrupted from None


def kept_text(run: Run, resumes: bool = False) -> str:
    """Where the finished cells of a run are, and how it goes on.

    Args:
        resumes: whether the command has the option ``--resume``.
    """
    if run.request.store is None:
        return "nothing is stored, because of --no-store"
    how = f"; --resume={run.run_id} measures the rest" if resumes else ""
    return f"what was measured is kept in {run.request.store}, run {run.run_id}{how}"
