"""A real Slurm on this machine, for tests: munged, slurmctld and slurmd in a folder of their own, without systemd."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.support.machines.leftovers import MARK, end, processes_with
from tests.support.machines.mpi import environment, run_command

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "scancel", "squeue", "sinfo")
_PATH = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"))
READY_S = 40.0


def missing() -> str:
    """Why no Slurm can be started here; empty when it can."""
    lacking = [name for name in PROGRAMS if shutil.which(name, path=_PATH) is None]
    if lacking:
        return f"Slurm is not installed: no {', '.join(lacking)} (apt-get install slurm-wlm munge)"
    return "" if os.geteuid() == 0 else "starting Slurm's daemons needs root"


@dataclass(frozen=True, slots=True)
class Slurm:
    """A cluster that runs."""

    folder: Path

    def environ(self, **more: str) -> dict[str, str]:
        """The variables with which its commands find it."""
        return environment(**{"SLURM_CONF": str(self.folder / "slurm.conf"), "PATH": _PATH, **more})

    def run(self, *words: str, timeout: float = 90, **more: str) -> subprocess.CompletedProcess[str]:
        """Run a command of Slurm, or one that uses them."""
        return run_command(words, timeout=timeout, cwd=self.folder, env=self.environ(**more))

    def logs(self) -> str:
        """The last lines of the daemons' logs, for a failure."""
        parts = [f"== {p.name}\n{p.read_text(errors='replace')[-1500:]}" for p in sorted(self.folder.glob("*.log"))]
        return "\n".join(parts)


def _ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [one.getsockname()[1] for one in held]


def _configuration(folder: Path, nodes: int, cpus: int) -> str:
    host, ports = socket.gethostname(), _ports(nodes + 1)
    lines = {
        "ClusterName": "ombpy",
        "SlurmctldHost": f"{host}(127.0.0.1)",
        "SlurmctldPort": ports[0],
        "SlurmUser": "root",
        "SlurmdUser": "root",
        "AuthType": "auth/munge",
        "AuthInfo": f"socket={folder}/munge.sock",
        "StateSaveLocation": folder / "state",
        "SlurmdSpoolDir": f"{folder}/spool.%n",
        # where its pmix plugin makes a folder, whose name is the same on each node
        "TmpFS": f"{folder}/tmp.%n",
        "SlurmctldPidFile": folder / "slurmctld.pid",
        "SlurmdPidFile": f"{folder}/slurmd.%n.pid",
        "SlurmctldLogFile": folder / "slurmctld.log",
        "SlurmdLogFile": f"{folder}/slurmd.%n.log",
        "ProctrackType": "proctrack/linuxproc",
        "TaskPlugin": "task/none",
        "MpiDefault": "none",
        "SwitchType": "switch/none",
        "JobAcctGatherType": "jobacct_gather/none",
        "AccountingStorageType": "accounting_storage/none",
        "SelectType": "select/cons_tres",
        "SelectTypeParameters": "CR_Core",
        "SlurmdParameters": "config_overrides",
        "ReturnToService": 2,
        # MPICH names its shared memory by the job: that of a killed one of another cluster here must not be met
        "FirstJobId": random.randrange(1000, 60_000_000),
        "KillWait": 2,
        "MinJobAge": 300,
        "SchedulerParameters": "sched_interval=1,batch_sched_delay=0",
    }
    made = [f"{key}={value}" for key, value in lines.items()]
    for number, port in enumerate(ports[1:], 1):
        made.append(
            f"NodeName=node{number} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs={cpus} State=UNKNOWN"
        )
    return "\n".join([*made, "PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP", ""])


@contextlib.contextmanager
def cluster(nodes: int = 2, cpus: int = 2) -> Iterator[Slurm]:
    """A cluster of so many nodes on this machine; nothing of it is left afterwards.

    Raises AssertionError with the daemons' logs when it does not come up.
    """
    # Unix sockets have short names, pytest's folders long ones
    folder = Path(tempfile.mkdtemp(prefix="slurm-"))
    environ = {"PATH": _PATH, "SLURM_CONF": str(folder / "slurm.conf"), "HOME": str(folder)}
    started: list[subprocess.Popen[bytes]] = []
    made = Slurm(folder)
    try:
        (folder / "state").mkdir()
        (folder / "slurm.conf").write_text(_configuration(folder, nodes, cpus))
        (folder / "munge.key").write_bytes(os.urandom(1024))
        (folder / "munge.key").chmod(0o400)
        munged = [
            "munged",
            "--foreground",
            "--force",
            f"--socket={folder}/munge.sock",
            f"--key-file={folder}/munge.key",
            f"--pid-file={folder}/munged.pid",
            f"--seed-file={folder}/munged.seed",
            "--num-threads=2",
        ]
        started.append(_start(folder, "munged", munged, environ))
        _until(lambda: (folder / "munge.sock").exists(), made, "munged")
        started.append(_start(folder, "slurmctld", ["slurmctld", "-D"], environ))
        for number in range(1, nodes + 1):
            (folder / f"tmp.node{number}").mkdir()
            started.append(_start(folder, f"slurmd{number}", ["slurmd", "-D", "-N", f"node{number}"], environ))
        _until(lambda: made.run("sinfo", "-h", "-t", "idle", "-o", "%D").stdout.strip() == str(nodes), made, "nodes")
        yield made
    finally:
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            made.run("scancel", "--user=root", timeout=10)
        for process in reversed(started):
            process.terminate()
        for process in started:
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        # steps outlive the daemon that started them
        end(processes_with(f"SLURM_CONF={folder}/slurm.conf", patience_s=2.0))
        shutil.rmtree(folder, ignore_errors=True)


def _start(folder: Path, name: str, words: list[str], environ: Mapping[str, str]) -> subprocess.Popen[bytes]:
    assert MARK not in environ, "daemons outlive a test"
    with (folder / f"{name}.out.log").open("wb") as out:
        return subprocess.Popen(
            words,
            env=dict(environ),
            stdout=out,
            stderr=out,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            executable=shutil.which(words[0], path=_PATH),
        )


def _until(ready, made: Slurm, what: str) -> None:  # type: ignore[no-untyped-def]
    over = time.monotonic() + READY_S
    while not ready():
        assert time.monotonic() < over, f"Slurm's {what} did not come up within {READY_S:g} s\n{made.logs()}"
        time.sleep(0.2)
