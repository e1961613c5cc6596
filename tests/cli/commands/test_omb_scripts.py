"""Options that scripts for OMB pass: accepted by every benchmark, with a note where they have no effect."""

from __future__ import annotations

from pathlib import Path

import pytest

from omb_py import __version__
from omb_py.cli import main
from omb_py.results.dialects.omb.titles import TITLES
from tests.support.kinds import one_of_each_family
from tests.support.tiers import few_quick

ON_NODES = dict.fromkeys(("bw_fan_in", "bw_fan_out"), ("-n", "4", "--mock", "nodes=2"))
"""What benchmarks need that measure between nodes."""
COMMON = ("-m", "1:16", "-i", "2", "-x", "0", "-u", "3", "-f", "-c", "-z50,99.9", "-T", "mpi_char")


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main([*words, "--no-store"])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.parametrize("name", few_quick(one_of_each_family(TITLES), 5))
def test_one_set_of_options_runs_through(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, f"osu_{name}", "--backend", "mock", *ON_NODES.get(name, ("-n", "2")), *COMMON)
    assert code == 0, err
    assert TITLES[name].line() in out
    assert "-u/--validation-warmup has no effect: -c checks iterations of its own" in err


@pytest.mark.parametrize(
    ("words", "note"),
    [
        (("barrier", "-m", "8:8"), "-m/--message-size has no effect: barrier has no message size"),
        (("latency", "-m", "8:8", "-f"), "-f/--full has no effect: latency has no minimum and maximum over ranks"),
        (("bw", "-m", "8:8", "-t", "3"), "-t/--num-test-calls has no effect: bw has no MPI_Test calls"),
        (
            ("latency_persistent", "-m", "8:8", "-b", "multiple"),
            "-b/--buffer-num has no effect: latency_persistent has no choice of one or several buffers",
        ),
        (("iallreduce", "-m", "8:8", "-a", "32"), "-a/--array-size has no effect: the computing beside"),
        (("latency", "--mess", "8:8", "-M", "1000"), "-M/--mem-limit has no effect: OMB has had none since 7.5"),
        (("init", "-c"), "-c/--validation has no effect: init has no data to validate"),
        (("mbw_mr", "-m", "8:8", "-p", "1"), "-p/--num-pairs has no effect: as in OMB, half of the ranks send"),
        (("mbw_mr", "-m", "8:8", "-V", "-z"), "-z/--tail-lat has no effect: as in OMB, the tables of -V"),
    ],
)
def test_a_note_says_why(words: tuple[str, ...], note: str, capsys: pytest.CaptureFixture[str]) -> None:
    line = (*words, "--backend", "mock", "-n", "2", "-i", "2", "-x", "0")
    code, out, err = run(capsys, *line)
    assert (code, f"omb-py: {note}" in err) == (0, True), err
    assert note not in run(capsys, *line, "--quiet")[2]
    assert "Tail" not in out


def test_what_only_omb_py_has_is_still_refused(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "barrier", "--backend", "mock", "-W", "8")
    assert code == 2 and "barrier has no window of messages in flight, so it takes no -W/--window-size" in err


def test_the_version_of_a_benchmark_is_its_title_as_in_omb(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "osu_latency", "-v")
    assert (code, out) == (0, "# OSU MPI Latency Test v7.5\n")
    assert run(capsys, "noise", "--version")[1].startswith(f"# omb-py {__version__}")


@pytest.mark.parametrize(
    "words", [("latency", "-v"), ("latency", "--help"), ("latency", "--help-all"), ("-v",), ("-h",)]
)
def test_a_page_is_shown_by_rank_0_alone(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omb_py.engine.rank.lifetime.let_rank_0_speak", lambda: None)
    monkeypatch.setenv("PMI_SIZE", "2")
    for rank in "01":
        monkeypatch.setenv("PMI_RANK", rank)
        code, out = main(list(words)), capsys.readouterr().out
        assert (code, bool(out)) == (0, rank == "0")


@pytest.mark.parametrize(
    ("name", "sizes"), [("alltoall", [1, 2, 4, 8]), ("latency", [1, 2, 4, 8]), ("allreduce", [4, 8])]
)
def test_a_range_from_0_begins_where_a_message_means_something(
    name: str, sizes: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, name, "--backend", "mock", "-m", "0:8", "-i", "2", "-x", "0")
    assert code == 0, err
    assert [int(line.split()[0]) for line in out.splitlines() if line[:1].isdigit()] == sizes


def sizes_and_bytes(out: str) -> list[tuple[int, int]]:
    """(size, transmit size) of every row."""
    rows = (line.split() for line in out.splitlines() if line[:1].isdigit())
    return [(int(words[0]), int(words[-1])) for words in rows]


def test_a_vector_that_holds_no_block_is_sent_empty(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "latency", "--backend", "mock", "-D", "vect:8:4", "-m", "4:16", "-i", "2", "-c")
    assert code == 0, err
    assert sizes_and_bytes(out) == [(4, 0), (8, 4), (16, 8)]


def test_pieces_of_a_file_are_repeated_or_sent_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pieces = tmp_path / "pieces"
    pieces.write_text("0, 2\n3, 1\n")
    line = ("latency", "--backend", "mock", "-m", "2:16", "-i", "2", "-c", "-D")
    assert sizes_and_bytes(run(capsys, *line, f"indx:{pieces}")[1]) == [(4, 3), (8, 6), (16, 12)]
    assert sizes_and_bytes(run(capsys, *line, f"once:{pieces}")[1]) == [(4, 3), (8, 3), (16, 3)]


def test_each_type_of_an_accumulate_has_its_title(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--backend", "mock", "-m", "4:4", "-i", "2", "-T", "all")
    assert run(capsys, "acc_latency", *words)[1].count("# OSU MPI_Accumulate latency Test v7.5") == 3
    assert run(capsys, "fop_latency", *words)[1].count("# OSU MPI_Fetch_and_op latency Test v7.5") == 3
    assert run(capsys, "put_latency", *words)[1].count("# OSU MPI_Put Latency Test v7.5") == 1


def test_get_acc_latency_begins_as_omb_s(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "get_acc_latency", "--backend", "mock", "-m", "4:4", "-i", "2")
    assert "# Window creation: MPI_Win_create\n# Synchronization: MPI_Win_lock/unlock\n" in out


@pytest.mark.parametrize(("words", "width"), [((), 10), (("-c",), 18)])
def test_latency_mp_forgets_its_width(words: tuple[str, ...], width: int, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "latency_mp", "--backend", "mock", "-m", "8:8", "-i", "2", *words)
    assert out.splitlines()[-1][:28].rstrip() == "8         " + f"{1.0:{width}.2f}"


@pytest.mark.parametrize(("ranks", "said"), [(2, True), (3, False)])
def test_neighbors_that_repeat_are_said_once(ranks: int, said: bool, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("neighbor_allgather", "-m", "8:16", "--backend", "mock", "-n", str(ranks), "-i", "2", "-x", "0")
    code, _, err = run(capsys, *words)
    assert (code, err.count("the same neighbor more than once, which OMB refuses")) == (0, int(said))
