"""Background job of an interference test: a process that measures again and again until it is ended."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence

from omb_py.engine.rank.lifetime import end_with_this_process
from omb_py.errors import EnvironmentProblem
from omb_py.results.dialects.registry import USUAL

FOREVER = ("--no-store", "--format", USUAL.name, "--repeat-for", "100h")
_PATIENCE_S = 20.0


@contextlib.contextmanager
def other_job(words: Sequence[str], timeout: float) -> Iterator[Callable[[], str]]:
    """Run ``omb-py WORDS`` in the background while the block runs.

    Args:
        timeout: seconds within which the job must have measured its first cell.

    Yields:
        A function that returns why the job has ended, or an empty text while it runs.

    Raises:
        EnvironmentProblem: the job ended, or measured nothing in time.
    """
    command = [sys.executable, "-m", "omb_py", *words, *FOREVER]
    job = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=end_with_this_process(signal.SIGTERM),  # on which omb-py ends its ranks
    )
    begun, errors = threading.Event(), list[str]()
    assert job.stdout is not None and job.stderr is not None
    readers = (
        # the first line that is neither comment nor blank is the first measured row
        threading.Thread(target=_read, args=(job.stdout, lambda line: None if line[:1] in "#\n" else begun.set())),
        threading.Thread(target=_read, args=(job.stderr, errors.append)),
    )
    for reader in readers:
        reader.daemon = True
        reader.start()

    def ended() -> str:
        if job.poll() is None:
            return ""
        readers[1].join(timeout=5)
        return errors[-1].strip() if errors else f"exit code {job.returncode}"

    try:
        waited = 0.0
        while not begun.wait(0.1):
            waited += 0.1
            if why := ended():
                raise EnvironmentProblem(f"the other job ({' '.join(words)}) has ended: {why}")
            if waited > timeout:
                raise EnvironmentProblem(f"the other job ({' '.join(words)}) has measured nothing for {timeout:.0f} s")
        yield ended
    finally:
        _end(job)
        for reader in readers:
            reader.join(timeout=5)
        job.stdout.close()
        job.stderr.close()


def _read(stream: object, take: Callable[[str], object]) -> None:
    with contextlib.suppress(ValueError):  # the stream was closed while we were reading
        for line in stream:  # type: ignore[attr-defined]
            take(line)


def _end(job: subprocess.Popen[str]) -> None:
    if job.poll() is not None:
        return
    # on SIGTERM omb-py ends its ranks; after SIGKILL they would have to notice by themselves
    job.terminate()
    try:
        job.wait(_PATIENCE_S)
    except subprocess.TimeoutExpired:
        job.kill()
        job.wait()
