"""The collector of a run inside a foreign launcher, when the launcher is gone."""

from __future__ import annotations

from pathlib import Path

import pytest

from omb_py.errors import Interrupted, LaunchFailed
from omb_py.options.request import Request
from omb_py.orchestrate.running import joined_collector
from omb_py.orchestrate.running.collector import Collector
from omb_py.orchestrate.running.joined_run import Job
from omb_py.results.store.journal import unfinished_runs
from tests.support.planning import plan


@pytest.mark.parametrize(
    ("error", "state"),
    [(BrokenPipeError(), "failed"), (LaunchFailed("rank 1 died"), "failed"), (Interrupted(), "interrupted")],
)
def test_a_run_that_lost_its_launcher_is_not_one_that_has_ended(
    error: Exception, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Open MPI's mpirun is gone at once after Ctrl-C: what is printed then has no reader."""

    def lose(collector: Collector, *words: object, **more: object) -> None:
        collector.run.command.begun = True
        raise error

    monkeypatch.setattr(joined_collector, "supervise", lose)
    (launch,) = plan(Request("allreduce", store=tmp_path), 2)
    with pytest.raises(type(error)):
        joined_collector._collect(Job(launch, "mpiexec", run_id="r1"), -1, lambda error: None)
    assert unfinished_runs(tmp_path) == {"r1": state}
