"""Progress: counts, the time left, and where it is shown. The clock is the test's."""

from __future__ import annotations

import io

import pytest

from omb_py.orchestrate.running.progress import PLAIN_S, Progress, Tally, progress_for, silent


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def launch(display: Progress | Tally, clock: Clock, cells: int, start_s: float = 2.0, cell_s: float = 1.0) -> None:
    """Make a launch whose first cell takes `start_s` longer than the others."""
    display.begin(cells)
    clock.now += start_s
    for _ in range(cells):
        clock.now += cell_s
        display.cell()
    display.end()


class TestTimeLeft:
    def test_is_a_start_for_each_launch_and_a_time_for_each_cell(self, clock) -> None:
        tally = Tally(clock)
        tally.plan([4, 4, 2])
        assert tally.left_s() is None
        launch(tally, clock, 4)  # 3 s to the first cell, 1 s for each other
        assert tally.left_s() == pytest.approx((3 + 3 * 1) + (3 + 1 * 1))
        tally.begin(4)
        assert tally.left_s() == pytest.approx((3 + 3 * 1) + (3 + 1 * 1))
        clock.now += 2
        assert tally.left_s() == pytest.approx(1 + 3 + 4)
        clock.now += 1
        tally.cell()
        assert tally.left_s() == pytest.approx(3 + 4)

    def test_of_launches_with_one_cell(self, clock) -> None:
        tally = Tally(clock)
        tally.plan([1] * 5)
        launch(tally, clock, 1)
        launch(tally, clock, 1)
        assert tally.left_s() == pytest.approx(9.0)

    def test_waits_for_some_cells_of_the_first_launch(self, clock) -> None:
        tally = Tally(clock)
        tally.plan([5])
        tally.begin(5)
        for _ in range(2):
            clock.now += 1
            tally.cell()
            assert tally.left_s() is None
        clock.now += 1
        tally.cell()
        assert tally.left_s() == pytest.approx(2.0)

    def test_a_launch_that_nobody_planned_counts(self, clock) -> None:
        tally = Tally(clock)
        tally.plan([1])
        launch(tally, clock, 1)
        tally.begin(1)
        assert tally.text().startswith("launch 2 of 2, ")


class TestDisplay:
    def test_a_terminal_has_one_line_that_changes(self, clock) -> None:
        out = io.StringIO()
        display = Progress(out, terminal=True, clock=clock)
        display.plan([2, 2])
        launch(display, clock, 2)
        display.begin(2)
        clock.now += 1
        display.tick()
        lines = [line for line in out.getvalue().split("\r\x1b[K") if line]
        assert lines[0] == "omb-py: launch 1 of 2, 0 of 2 cells, 0 s so far"
        assert lines[-1] == "omb-py: launch 2 of 2, 0 of 2 cells, about 3 s left"
        assert "\n" not in out.getvalue()
        display.end()
        assert out.getvalue().endswith("\r\x1b[K")  # nothing is left on the terminal

    def test_it_does_not_flicker(self, clock) -> None:
        out = io.StringIO()
        display = Progress(out, terminal=True, clock=clock)
        display.begin(1000)
        for _ in range(999):
            clock.now += 0.001
            display.cell()
        assert out.getvalue().count("omb-py") < 10

    def test_elsewhere_a_line_from_time_to_time(self, clock) -> None:
        out = io.StringIO()
        display = Progress(out, terminal=False, clock=clock)
        display.plan([1] * 10)
        for _ in range(10):
            launch(display, clock, 1, start_s=0, cell_s=PLAIN_S / 4)
        lines = out.getvalue().splitlines()
        assert lines == ["omb-py: launch 4 of 10, about 30 s left", "omb-py: launch 8 of 10, about 10 s left"]

    def test_a_short_command_prints_no_line(self, clock) -> None:
        out = io.StringIO()
        display = Progress(out, terminal=False, clock=clock)
        launch(display, clock, 3)
        assert out.getvalue() == ""

    def test_a_long_cell_is_not_silent(self, clock) -> None:
        out = io.StringIO()
        display = Progress(out, terminal=False, clock=clock)
        display.plan([1])
        display.begin(1)
        for _ in range(30):  # heartbeats
            clock.now += 1
            display.tick()
        assert out.getvalue() == "omb-py: 20 s so far\n"

    @pytest.mark.parametrize(
        ("quiet", "environ"), [(True, {}), (False, {"OMB_PY_PROGRESS": "never"})], ids=["quiet", "never"]
    )
    def test_switched_off(self, quiet, environ, capsys, monkeypatch) -> None:
        display = progress_for(quiet, environ)
        display.begin(1)
        display.tally.clock = lambda: 1e9
        display.tick()
        assert capsys.readouterr().err == ""

    def test_silent_still_counts(self, clock) -> None:
        display = silent()
        display.begin(1)
        display.end()
        assert display.tally.launches == 1


def test_where_nothing_is_shown_time_passes_in_silence(clock) -> None:
    hidden = Progress(None, terminal=False, clock=clock)
    hidden.begin(3)
    clock.now += 10 * PLAIN_S
    hidden.tick()
    hidden.end()
    out = io.StringIO()
    Progress(out, terminal=False, clock=clock).tick()
    assert out.getvalue() == "", "nothing is running"
