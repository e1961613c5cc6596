"""A stranger's suite starts nothing and reads nothing outside its folder."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from omb_py.cli import main
from omb_py.errors import EnvironmentProblem, UsageError
from omb_py.options.table import TABLE
from omb_py.orchestrate.suites import trust
from omb_py.orchestrate.suites.expand import find_suite, load_suite

PROGRAM = "[defaults]\nlauncher-args = '''/bin/sh -c 'touch pwned; exec \"$0\" \"$@\"' '''\n"
BODY = '[[entry]]\nbenchmarks = ["latency"]\nmessage-size = "8:8"\n'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the suite is the current one; the list of trusted files lies beside it."""
    (tmp_path / "suite").mkdir()
    (tmp_path / "outside.txt").write_text("1 1\n1 1\n")
    monkeypatch.chdir(tmp_path / "suite")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "suite"


def write(text: str) -> str:
    Path("s.toml").write_text(f'name = "s"\n{text}')
    return "./s.toml"


@pytest.mark.parametrize(
    "command", ["run s.toml", "accept s.toml", "compare --set NEW:a=b s.toml", "run s.toml --submit slurm"]
)
def test_no_command_starts_a_program_that_a_file_names(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    write(PROGRAM + BODY + '[[criterion]]\nid = "a"\nbenchmark = "latency"\nmax = "1 s"\n')
    assert main(command.split()) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert "s.toml: line 3: launcher-args = '/bin/sh -c" in last and last.endswith("omb-py suite check --trust s.toml")
    assert not Path("pwned").exists()


def test_check_lists_what_a_file_would_start(capsys: pytest.CaptureFixture[str]) -> None:
    text = '[defaults]\nlauncher = "none"\nhosts = "a,b"\n' + BODY
    criterion = '[[criterion]]\nid = "a"\nbenchmark = "latency"\ninterference = "9%"\n'
    write(text + '[accept]\nbackground-job = "alltoall --store x"\n' + criterion)
    assert main(["suite", "check", "s.toml"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(": ")[2] for line in lines[1:]] == ["line 3", "line 4", "line 9"]
    assert lines[1] == "s.toml: only for a trusted file: line 3: launcher = 'none' starts the ranks"
    assert lines[0].startswith("s.toml: fine: ")


@pytest.mark.parametrize(
    "line",
    [
        "traffic = '../outside.txt'",
        "traffic = 'link'",
        "traffic = 'pipe'",
        "traffic = '/dev/zero'",
        "ddt = 'indx:../outside.txt'",
        "ddt = 'once:/etc/passwd'",
        "nhbr = 'graph:../outside.txt'",
        "nhbr = ['cart:1:1', 'graph:../outside.txt']",
        "validation = 'log:/tmp/somewhere'",
        "workload = 'moe:tokens=16,traffic=@../outside.txt'",
        "traffic = '\\u0000'".replace("'", '"'),
    ],
)
def test_a_file_outside_the_folder_is_not_touched(line: str) -> None:
    os.symlink("../outside.txt", "link")
    os.mkfifo("pipe")
    for starting in (True, False):
        with pytest.raises(UsageError, match=r"^\./s\.toml: line 5: .* is no file in the folder of the suite"):
            load_suite(write(BODY + line), starting)


@pytest.mark.parametrize(
    "line",
    [
        "traffic = 'own.txt'",
        "ddt = 'vect:4:2'",
        "nhbr = 'cart:2:1'",
        "validation = 'log'",
        "validation = 'log:new'",
        "workload = 'ddp:model=resnet50,scale=1/4'",
        "type = 'int32'",
    ],
)
def test_what_needs_no_trust(line: str) -> None:
    Path("own.txt").write_text("1 1\n1 1\n")
    assert load_suite(write(BODY + line)).name == "s"


@pytest.mark.parametrize(
    ("job", "needs"),
    [
        ("alltoall -n 2 -m 64K:64K", False),
        ("omb-py alltoall -n 2 --backend=mock --mock alpha=1us,noise=0.1", False),
        ("alltoall --launcher-args=-x", True),
        ("alltoall -n 2 --hosts a", True),
        ("alltoall -n 2 --store /tmp/x", True),
        ("alltoallv -n 2 --traffic /etc/passwd", True),
        ("latency -Dindx:/etc/passwd", True),
        ("latency -m 8:8 -Dindx:x", True),
    ],
)
def test_a_background_job_that_an_entry_could_be_needs_no_trust(job: str, needs: bool) -> None:
    suite = find_suite(write(BODY + f'[accept]\nbackground-job = "{job}"\n'))
    assert [demand.at.key for demand in trust.demands(suite)] == ["background-job"] * needs


def test_a_baseline_is_a_folder_of_the_suite() -> None:
    assert load_suite(write(BODY + '[accept]\nbaseline = "last"\n'))
    with pytest.raises(UsageError, match="baseline = '/tmp'"):
        load_suite(write(BODY + '[accept]\nbaseline = "/tmp"\n'))


def test_trust_is_for_this_content(capsys: pytest.CaptureFixture[str]) -> None:
    word = write(PROGRAM + BODY)
    assert main(["suite", "check", "--trust", word]) == 0
    assert load_suite(word).name == "s"
    assert Path("../state/omb-py/trusted-suites").stat().st_mode & 0o777 == 0o600
    with pytest.raises(UsageError, match="launcher-args"):
        load_suite(write(PROGRAM.replace("pwned", "pawned") + BODY))


def test_a_list_that_others_can_write_is_no_list() -> None:
    word = write(PROGRAM + BODY)
    trust.remember(find_suite(word))
    os.chmod("../state/omb-py/trusted-suites", 0o666)
    with pytest.raises(UsageError, match="launcher-args"):
        load_suite(word)


def test_a_list_that_cannot_be_written_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null")
    with pytest.raises(EnvironmentProblem, match="set XDG_STATE_HOME"):
        trust.remember(find_suite(write(PROGRAM + BODY)))


class Terminal(io.StringIO):
    """Somebody who types."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("answer", ["y\n", "n\n", "", "\n"])
def test_on_a_terminal_it_is_asked_once(answer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    word = write(PROGRAM + BODY)
    screen = Terminal()
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    monkeypatch.setattr("sys.stderr", screen)
    if answer == "y\n":
        assert load_suite(word).name == load_suite(word).name == "s"
    else:
        with pytest.raises(UsageError):
            load_suite(word)
    assert screen.getvalue().count("[y/N]") == 1 and "line 3: launcher-args = '/bin/sh" in screen.getvalue()


def test_ranks_of_a_launcher_ask_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", Terminal("y\n"))
    monkeypatch.setattr("sys.stderr", Terminal())
    monkeypatch.setenv("PMI_RANK", "0")
    monkeypatch.setenv("PMI_SIZE", "2")
    with pytest.raises(UsageError):
        load_suite(write(PROGRAM + BODY))


def test_every_option_that_names_a_file_is_watched() -> None:
    naming = [
        o for o in TABLE if o.scope != "line" and any(word in f"{o.metavar} {o.help}" for word in ("FILE", "DIR"))
    ]
    assert {option.long for option in naming} <= set(trust.FILES)
    assert set(trust.STARTS) - {"background-job"} <= {option.long for option in TABLE}


def test_suites_that_come_with_omb_py_need_no_trust() -> None:
    assert load_suite("interference").accept is not None
