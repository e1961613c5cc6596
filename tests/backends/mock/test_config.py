"""The text that configures the simulation."""

from __future__ import annotations

import numpy as np
import pytest

from omb_py.backends.mock.config import Config, parse
from omb_py.backends.mock.faults import Fault, Flipper, RankDied, RankHangs
from omb_py.backends.mock.session import MockSession
from omb_py.errors import ENVIRONMENT, LaunchFailed, UsageError


def test_empty_text_is_the_default_machine() -> None:
    assert parse("") == parse(" , ") == Config()


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("alpha=1.5us", "alpha", 1500.0),
        ("alpha=2ms", "alpha", 2e6),
        ("alpha=1s", "alpha", 1e9),
        ("beta=0.1ns", "beta", 0.1),
        ("noise=0.05", "noise", 0.05),
        ("launch=0.1", "launch", 0.1),
        ("spike=0.03:10", "spike", (0.03, 10.0)),
        ("drift=-0.01", "drift", -0.01),
        ("straggler=3:2us", "straggler", ((3, 2000.0),)),
        ("slow=3:1.06, slow=1:2", "slow", ((3, 1.06), (1, 2.0))),
        ("link=2-5:3", "link", ((2, 5, 3.0),)),
        ("uplink=2-5:3, uplink=7-7:2", "uplink", ((2, 5, 3.0), (7, 7, 2.0))),
        ("straggler=3:2us, straggler=1:5ns", "straggler", ((3, 2000.0), (1, 5.0))),
        ("series=10us/12us", "series", ((10e3, 12e3),)),
        ("series=10us/12us:20us", "series", ((10e3, 12e3), (20e3,))),
        ("nodes=2", "nodes", 2),
        ("between=5us:0.4ns", "between", (5000.0, 0.4)),
        ("nics=2", "nics", 2),
        ("channels=4", "channels", 4),
        ("eager=64K", "eager", 65536),
        ("eager=0", "eager", 0),
        ("eager=1MiB", "eager", 1 << 20),
        ("version=2.1-rc", "version", "2.1-rc"),
        ("data=off", "data", "off"),
        ("flip=1", "flip", (Fault(1),)),
        ("hang=2:8:17", "hang", (Fault(2, 8, 17),)),
        ("die=2:1K", "die", (Fault(2, 1024),)),
        ("die=2::17", "die", (Fault(2, None, 17),)),
        ("hang=1,hang=2", "hang", (Fault(1), Fault(2))),
    ],
)
def test_settings(text: str, name: str, value: object) -> None:
    assert getattr(parse(text), name) == value


@pytest.mark.parametrize(
    ("ranks", "text", "words"),
    [
        (4, "hang=4", "there is no rank 4 among 4"),
        (0, "", "1 to 65536 ranks, not 0"),
        (65537, "", "1 to 65536 ranks, not 65537"),
    ],
)
def test_what_does_not_fit_the_ranks(ranks: int, text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        MockSession({"ranks": ranks, "settings": text})


def test_a_fault_strikes_where_it_is_told() -> None:
    assert Fault(1).strikes(8, 0)
    assert Fault(1, 8).strikes(8, 5) and not Fault(1, 8).strikes(16, 5)
    assert Fault(1, None, 5).strikes(8, 5) and not Fault(1, None, 5).strikes(8, 4)


def test_a_lost_rank_is_named_in_words() -> None:
    hang = RankHangs(2, "node1", 1, "recv 8 B from 0", 17, "latency 8 B")
    text = "rank 2 (node1) hangs in step 1 (recv 8 B from 0), iteration 17 of latency 8 B; nothing can move"
    assert str(hang) == text
    assert isinstance(hang, LaunchFailed) and hang.exit_code == ENVIRONMENT
    died = RankDied(2, "node1", 1, "barrier", None, "barrier")
    assert str(died) == "rank 2 (node1) died in step 1 (barrier), set-up or teardown of barrier"


def test_flipper_inverts_one_byte_of_the_first_delivery_of_an_iteration() -> None:
    flipper = Flipper([Fault(1, 8, 3), Fault(1, 8, 5), Fault(2, 16)], 8)
    assert flipper.ranks == (1,)
    wrong = []
    for iteration in range(7):
        for rank in (0, 1, 1, 2):
            data = np.zeros(2, np.uint8)
            flipper.deliver(rank, data, iteration)
            wrong.append(data.tolist())
    assert [k for k, data in enumerate(wrong) if data != [0, 0]] == [4 * 3 + 1, 4 * 5 + 1]
    assert wrong[13] == wrong[21] == [255, 0]


def test_flipper_starts_again_with_each_loop_and_passes_over_empty_deliveries() -> None:
    flipper, data = Flipper([Fault(1)], 8), np.zeros(2, np.uint8)
    flipper.deliver(1, data[:0], 5)
    flipper.deliver(1, data, 5)
    assert data.tolist() == [255, 0]
    flipper.deliver(1, data, 5)
    assert data.tolist() == [255, 0]
    flipper.restart()
    flipper.deliver(1, data, 5)
    assert data.tolist() == [0, 0]
