"""Batch scripts, and jobs of an sbatch that runs them here."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from omb_py.cli import main
from omb_py.errors import EnvironmentProblem
from omb_py.orchestrate.batch import Batch, Done, code_of, script_of, submit
from tests.backends.test_mpi_library import program

SBATCH = """\
for last; do :; done
echo "$@" >> {folder}/asked
job=$(($(wc -l < {folder}/asked) + 40))
echo "$job;cluster"
SLURM_JOB_ID=$job bash "$last" > {jobs}/$job.out 2>&1
"""
"""Runs the job at once."""


def batch(folder: Path, *words: str, **more: object) -> Batch:
    return Batch(words or ("run", "quick"), folder / "jobs", **more)  # type: ignore[arg-type]


def test_a_script_says_what_was_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = batch(tmp_path, "run", "my suite.toml", nodes=2, ranks=8, time_limit="30")
    text = script_of(made, {})
    for line in ("--job-name=omb-py-run", "--nodes=2", "--ntasks=8", "--time=30", f"--output={tmp_path}/jobs/%j.out"):
        assert f"#SBATCH {line}\n" in text
    assert f"cd {tmp_path}\n" in text and text.endswith("-m omb_py run 'my suite.toml'\n")
    assert "--array" not in text and "--exclusive" not in text


def test_jobs_of_an_array_write_files_of_their_own(tmp_path: Path) -> None:
    text = script_of(batch(tmp_path, "accept", "s", "--output", "a b.xml", "--output=c.json", array=3), {})
    assert "#SBATCH --array=0-2\n" in text and "#SBATCH --exclusive\n" in text
    assert """--output 'a b'-"$part".xml --output=c-"$part".json""" in text
    alone = script_of(batch(tmp_path, "accept", "s", "--output", "a.xml"), {})
    assert alone.endswith("accept s --output a.xml\n")
    checked = subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True, check=False)
    assert checked.returncode == 0, checked.stderr


def fake(folder: Path, text: str = SBATCH) -> dict[str, str]:
    program(folder / "sbatch", "")
    (folder / "sbatch").write_text("#!/bin/bash\n" + text.format(folder=folder, jobs=folder / "jobs"))
    program(folder / "scancel", "")
    (folder / "scancel").write_text(f'#!/bin/bash\necho "$@" >> {folder}/cancelled\n')
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}


def test_a_job_a_subset_and_the_worst_code_counts(tmp_path: Path) -> None:
    told: list[str] = []
    made = batch(tmp_path, "suite", "list", subsets=("n[1-2]", "n3"), extra=("--partition=x",))
    done = submit(made, told.append, fake(tmp_path))
    assert sorted((one.job, one.where, one.code) for one in done) == [("41", "n[1-2]", 0), ("42", "n3", 0)]
    assert all("quick" in one.files[0].read_text() for one in done)
    asked = (tmp_path / "asked").read_text().splitlines()
    script = tmp_path / "jobs" / "job.sh"
    assert asked[0] == f"--wait --parsable --nodelist=n[1-2] --partition=x {script}"
    assert told[0] == f"submitted job 41 on n[1-2]: {script}"
    assert not (tmp_path / "cancelled").exists()


def test_the_code_of_a_job_is_that_of_its_command(tmp_path: Path) -> None:
    (one,) = submit(batch(tmp_path, "suite", "check", "nowhere.toml"), lambda text: None, fake(tmp_path))
    assert one.code == 2 and "cannot read suite nowhere.toml" in one.files[0].read_text()
    codes = [Done("1", "", code, ()) for code in (0, 4, 1)]
    assert code_of(codes) == 1 and code_of([*codes, Done("2", "", 3, ())]) == 3 and code_of([]) == 3


def test_an_sbatch_that_refuses_cancels_what_was_submitted(tmp_path: Path) -> None:
    refuses = 'case "$*" in *n9*) echo "sbatch: error: invalid node name" >&2; exit 1;; esac; echo 7; exec sleep 30'
    environ = fake(tmp_path, refuses)
    with pytest.raises(EnvironmentProblem, match=r"invalid node name: see .*job\.sh"):
        submit(batch(tmp_path, subsets=("n1", "n9")), lambda text: None, environ)
    assert (tmp_path / "cancelled").read_text() == "7\n"
    with pytest.raises(EnvironmentProblem, match="submit where Slurm is, or --print-script"):
        submit(batch(tmp_path), lambda text: None, {"PATH": "/nowhere"})


def test_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    line = ["run", "quick", "-n", "4", "--print-script", "--nodes=2", "--submit-args", "--qos x", "--store", "st"]
    assert main(line) == 0
    out = capsys.readouterr().out
    assert out.endswith("-m omb_py run quick -n 4 --store st\n") and "--ntasks=4\n" in out and "--nodes=2\n" in out
    for words, says in (
        ("--nodes 2", "--nodes is for a batch job: add --submit slurm"),
        ("--submit pbs", "unknown scheduler 'pbs': valid"),
        ("--submit slurm --subset n1 --array 2", "--subset names the nodes of each job"),
        ("--submit slurm --submit-args '", '--submit-args "\'": No closing quotation'),
    ):
        assert main(["run", "quick", *words.split()]) == 2
        err = capsys.readouterr().err
        assert err.startswith(f"omb-py: error: {says}") and err.count("\n") == 1, err
