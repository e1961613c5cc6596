"""Batch scripts, and jobs of an sbatch that runs them here."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from shlex import quote

import pytest

from omb_py.cli import main
from omb_py.errors import EnvironmentProblem
from omb_py.launchers.launcher import BatchRequest
from omb_py.orchestrate.launching.batch_job import Done, code_of, script_of, submit
from tests.launchers.test_mpiexec import program
from tests.support.machines.mpi import run_command

SBATCH = """\
for last; do :; done
echo "$@" >> '{folder}'/asked
job=$(($(wc -l < '{folder}'/asked) + 40))
echo "$job;cluster"
SLURM_JOB_ID=$job bash "$last" > "{jobs}/$job.out" 2>&1
"""
"""Runs the job at once."""


NAME = '"${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}${SLURM_ARRAY_TASK_ID:+_$SLURM_ARRAY_TASK_ID}"'


def batch(folder: Path, *words: str, **more: object) -> BatchRequest:
    return BatchRequest(words or ("run", "quick"), folder / "jobs", **more)  # type: ignore[arg-type]


def test_a_script_says_what_was_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = batch(tmp_path, "run", "my suite.toml", nodes=2, ranks=8)
    text = script_of(made, {})
    output = quote(f"{tmp_path}/jobs/%j.out")
    for line in ("--job-name=omb-py-run", "--nodes=2", "--ntasks=8", f"--output={output}", "--no-kill"):
        assert f"#SBATCH {line}\n" in text
    assert f"cd {quote(str(tmp_path))} || exit 3\n" in text and text.endswith(".code run 'my suite.toml'\n")
    assert "--array" not in text and "--exclusive" not in text


@pytest.mark.slow
def test_a_folder_with_blanks_and_signs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As ``sbatch`` of Slurm 22.05 reads them: quotes as a shell, per cent signs twice."""
    folder = tmp_path / "my 5% runs"
    folder.mkdir()
    monkeypatch.chdir(folder)
    text = script_of(batch(folder), {})
    assert f"#SBATCH --output='{tmp_path}/my 5%% runs/jobs/%j.out'\n" in text and f"cd '{folder}' || exit 3\n" in text
    (done,) = submit(batch(folder, "suite", "list"), lambda text: None, fake(tmp_path, SBATCH, folder / "jobs"))
    assert done.code == 0 and "quick" in done.files[0].read_text()


def test_jobs_of_an_array_write_files_of_their_own(tmp_path: Path) -> None:
    text = script_of(batch(tmp_path, "accept", "s", "--output", "a b.xml", "--output=c.json", array=3), {})
    assert "#SBATCH --array=0-2\n" in text and "#SBATCH --exclusive\n" in text
    assert """--output 'a b'-"$part".xml --output=c-"$part".json""" in text
    assert f"{quote(str(tmp_path / 'jobs'))}/{NAME}.code accept s" in text
    alone = script_of(batch(tmp_path, "accept", "s", "--output", "a.xml"), {})
    assert alone.endswith("accept s --output a.xml\n")
    checked = subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True, check=False)
    assert checked.returncode == 0, checked.stderr


@pytest.mark.parametrize("more", ["", " --subset n[1-2] --subset n3", " --array 2"])
def test_what_goes_on_with_a_run_of_a_job_is_a_job(
    more: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A hint in its output is typed on a login node, where nothing shall be measured."""
    monkeypatch.chdir(tmp_path)
    line = f"run quick --backend mock -n 2 --submit slurm --nodes 1{more}"
    assert main([*line.split(), "--print-script"]) == 0
    text = capsys.readouterr().out
    (typed,) = (text for text in text.splitlines() if text.startswith("export OMB_PY_TYPED="))
    own = run_command(["bash", "-c", f"SLURM_JOB_NODELIST=n[1-2]; {typed}; echo $OMB_PY_TYPED"]).stdout.split()
    one = line.removesuffix(more).split()
    assert own == [*one, "--print-script", *(("--subset", "n[1-2]") if more else ())]
    assert text.endswith("run quick --backend mock -n 2\n")
    assert main("run quick --print-script".split()) == 0
    assert "OMB_PY_TYPED" not in capsys.readouterr().out, "whoever submits it gives the job its nodes"


ARRAY = """\
for last; do :; done
echo 41
export SLURM_ARRAY_JOB_ID=41 most=0
for code in {codes}; do
  export SLURM_ARRAY_TASK_ID=$((${{SLURM_ARRAY_TASK_ID:--1}} + 1)) SLURM_JOB_ID=$((41 + n++))
  CODE=$code bash "$last" > "{jobs}/41_$SLURM_ARRAY_TASK_ID.out" 2>&1
  most=$(($? > most ? $? : most))
done
exit $most
"""
"""As ``sbatch --wait`` of an array: the highest exit code is its own. Tasks end as the variable CODE says."""


def fake(folder: Path, text: str = SBATCH, jobs: Path | None = None, **more: str) -> dict[str, str]:
    program(folder / "sbatch", "")
    jobs = jobs or folder / "jobs"
    (folder / "sbatch").write_text("#!/bin/bash\n" + text.format(folder=folder, jobs=jobs, **more))
    program(folder / "scancel", "")
    (folder / "scancel").write_text(f'#!/bin/bash\necho "$@" >> {quote(str(folder))}/cancelled\n')
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}


@pytest.mark.slow
def test_a_job_a_subset_and_the_worst_code_counts(tmp_path: Path) -> None:
    told: list[str] = []
    made = batch(tmp_path, "suite", "list", subsets=("n[1-2]", "n3"), extra=("--partition=x",))
    done = submit(made, told.append, fake(tmp_path))
    assert sorted((one.job, one.where, one.code) for one in done) == [("41", "n[1-2]", 0), ("42", "n3", 0)]
    assert all("quick" in one.files[0].read_text() for one in done)
    asked = (tmp_path / "asked").read_text().splitlines()
    (script,) = (tmp_path / "jobs").glob("*.sh")
    assert asked[0] == f"--wait --parsable --nodelist=n[1-2] --partition=x {script}"
    assert told[0] == f"submitted job 41 on n[1-2]: {script}"
    assert not (tmp_path / "cancelled").exists()
    submit(made, told.append, fake(tmp_path))
    assert len(list(script.parent.glob("*.sh"))) == 2, "another command may submit from here at the same time"


@pytest.mark.slow
def test_the_code_of_a_job_is_that_of_its_command(tmp_path: Path) -> None:
    (one,) = submit(batch(tmp_path, "suite", "check", "nowhere.toml"), lambda text: None, fake(tmp_path))
    assert one.code == 2 and "cannot read suite nowhere.toml" in one.files[0].read_text()
    codes = [Done("1", "", code, ()) for code in (0, 4, 1)]
    assert code_of(codes) == 1 and code_of([*codes, Done("2", "", 3, ())]) == 3 and code_of([]) == 3


@pytest.fixture
def disk_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of a job are there when it ends, or will never be."""
    monkeypatch.setattr("omb_py.orchestrate.launching.batch_job._SHARED_S", 0.0)


@pytest.mark.usefixtures("disk_of_its_own")
def test_a_job_that_was_killed_has_no_verdict(tmp_path: Path) -> None:
    """``sbatch --wait`` ends with 1 when a signal has ended the job, as if a criterion were missed."""
    told: list[str] = []
    killed = "for last; do :; done; echo 41; touch '{folder}'/jobs/41.out; exit 1"
    (one,) = submit(batch(tmp_path), told.append, fake(tmp_path, killed))
    assert (one.code, one.silent) == (3, ("41",))
    assert told[-1] == (
        "job 41 has ended with 3; 41 left no exit code: it was killed, by a signal, a limit or a node's failure"
    )


@pytest.mark.usefixtures("disk_of_its_own")
@pytest.mark.parametrize(("codes", "worst"), [("0 0", 0), ("1 4", 1), ("3 4", 3), ("4 0", 4), ("1 2", 2), ("0 9", 3)])
def test_of_an_array_the_worst_code_counts_not_the_highest(
    codes: str, worst: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stand-in for omb-py, which ends as it is told; 9 is a task that is killed."""
    stand_in = tmp_path / "python"
    stand_in.write_text('#!/bin/bash\n[ "$CODE" = 9 ] && kill -9 $$\necho $CODE > "$3"\nexit $CODE\n')
    stand_in.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(stand_in))
    (one,) = submit(batch(tmp_path, array=2), lambda text: None, fake(tmp_path, ARRAY, codes=codes))
    assert one.code == worst and one.silent == (("41_1",) if "9" in codes else ())


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "jobs").write_text("a file")
    with pytest.raises(EnvironmentProblem, match=r"cannot write a script into .*jobs: File exists"):
        submit(batch(tmp_path), lambda text: None, fake(tmp_path))


def test_an_sbatch_that_refuses_cancels_what_was_submitted(tmp_path: Path) -> None:
    refuses = 'case "$*" in *n9*) echo "sbatch: error: invalid node name" >&2; exit 1;; esac; echo 7; exec sleep 30'
    environ = fake(tmp_path, refuses)
    with pytest.raises(EnvironmentProblem, match=r"invalid node name: see .*job-\w+\.sh"):
        submit(batch(tmp_path, subsets=("n1", "n9")), lambda text: None, environ)
    assert (tmp_path / "cancelled").read_text() == "7\n"
    with pytest.raises(EnvironmentProblem, match="submit where Slurm is, or --print-script"):
        submit(batch(tmp_path), lambda text: None, {"PATH": "/nowhere"})


@pytest.mark.slow
def test_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    line = ["run", "quick", "-n", "4", "--print-script", "--nodes=2", "--submit-args", "--qos x", "--store", "st"]
    assert main(line) == 0
    out = capsys.readouterr().out
    assert out.endswith(".code run quick -n 4 --store st\n") and "--ntasks=4\n" in out and "--nodes=2\n" in out
    assert "\n#SBATCH --qos x\n" in out
    for given, tasks in (("", "--ntasks=2\n"), ("--nodes 2", None), ("--submit-args=-n5", None)):
        assert main(["run", "quick", "--print-script", *given.split()]) == 0
        out = capsys.readouterr().out
        assert tasks in out if tasks else "--ntasks" not in out
    for words, says in (
        ("--nodes 2", "--nodes is for a batch job: add --submit slurm"),
        ("--submit slurm --nodes 99 -n 2", "--nodes 99 with -n 2: 97 nodes would have no rank"),
        ("--submit pbs", "unknown scheduler 'pbs': valid"),
        ("--submit slurm --subset n1 --array 2", "--subset names the nodes of each job"),
        ("--submit slurm --subset=", "--subset names no node: write it as node[1-4]"),
        ("--submit slurm --submit-args '", '--submit-args "\'": No closing quotation'),
    ):
        assert main(["run", "quick", *words.split()]) == 2
        err = capsys.readouterr().err
        assert err.startswith(f"omb-py: error: {says}") and err.count("\n") == 1, err


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ("run nowhere.toml", 2, "cannot read suite nowhere.toml"),
        ("accept quick", 2, "no [[criterion]], so nothing can be accepted"),
        ("accept acceptance --output a.foo", 2, "--output a.foo: the ending says the form"),
        ("accept acceptance --output gone/a.xml", 3, "there is no folder gone"),
    ],
)
def test_what_is_wrong_is_said_before_the_queue(
    words: str,
    code: int,
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", fake(tmp_path)["PATH"])
    for how in (("--submit", "slurm"), ("--print-script",)):
        assert main([*words.split(), *how]) == code
        out, err = capsys.readouterr()
        assert out == "" and says in err and err.count("\n") == 1
    assert not (tmp_path / "asked").exists()
