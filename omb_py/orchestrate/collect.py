"""The collector process of a run inside a foreign launcher (see :mod:`omb_py.orchestrate.join`)."""

from __future__ import annotations

import os
import pickle
import sys
from typing import Any

from omb_py.errors import NEGATIVE, OK, OmbError
from omb_py.orchestrate.collector import Collector
from omb_py.orchestrate.execute import finish, new_run, spec_of, supervise
from omb_py.orchestrate.join import ADDRESS_FD


def main() -> int:
    """Supervise ranks that somebody else started; returns the run's exit code."""
    request, launch, launcher, run_id, notes = pickle.load(sys.stdin.buffer)
    descriptor = int(os.environ.pop(ADDRESS_FD))
    run = new_run(request, [launch], run_id)
    for note in notes:
        run.note(note)

    def announce(address: str, token: str) -> None:
        with os.fdopen(descriptor, "w") as pipe:
            pipe.write(f"{address} {token}\n")

    collector = Collector(run, launch, {"launcher": launcher, "command": []})
    spec: dict[str, Any] = spec_of(run, launch)
    try:
        try:
            supervise(collector, spec, words=None, local=_one_host(), launcher=launcher, announce=announce)
        finally:
            finish(run)
    except OmbError as error:
        print(f"omb-py: error: {error}", file=sys.stderr, flush=True)
        return error.exit_code
    return NEGATIVE if run.failed else OK


def _one_host() -> bool:
    """Whether the launcher says that all ranks are on this machine; when it does not say, ranks may be elsewhere."""
    environ = os.environ
    for local, world in (
        ("OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_SIZE"),
        ("MPI_LOCALNRANKS", "PMI_SIZE"),
        ("LOCAL_WORLD_SIZE", "WORLD_SIZE"),
    ):
        if local in environ and world in environ:
            return environ[local] == environ[world]
    return environ.get("SLURM_NNODES") == "1"


if __name__ == "__main__":
    sys.exit(main())
