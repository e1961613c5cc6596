"""Command lines of each launcher, and real launches with the MPI library of this Python."""

from __future__ import annotations

import dataclasses
import os
import shlex
import sys
from pathlib import Path

import pytest

from omb_py.errors import EnvironmentProblem, LaunchFailed, UsageError
from omb_py.launchers.core_binding import Processors
from omb_py.launchers.launcher import LaunchCommand
from omb_py.launchers.machine import LaunchMachine
from omb_py.launchers.mpi_library import MPILibrary
from omb_py.launchers.mpiexec_family import INTEL, MPICH, OPEN_MPI
from omb_py.launchers.srun import srun_type
from omb_py.orchestrate.launching.launch_command import command_for, report_launchers
from omb_py.orchestrate.supervision import processes
from omb_py.orchestrate.supervision.supervisor import Handlers, Outcome, Supervisor
from tests.launchers.test_mpiexec import SAYS, program
from tests.support.machines.mpi import AS_ROOT
from tests.support.patience import PATIENCE_S

VERSIONS = {MPICH: "5.0.2", OPEN_MPI: "5.0.11", INTEL: "2021.16.0"}
TWO = Processors(((0,), (1,)))
PROGRAM = ["python", "rank.py"]
"""What is started."""


def context(folder: Path, vendor: str, root: bool = False, here: Processors = TWO, **environ: str) -> LaunchMachine:
    """A machine with one MPI library and its launcher."""
    program(folder / "mpiexec", SAYS[vendor])
    library = MPILibrary(vendor, VERSIONS[vendor], path=str(folder / "lib/libmpi.so"))
    return LaunchMachine({"PATH": str(folder), **environ}, str(folder / "python"), here, lambda python: library, root)


def options(command: LaunchCommand) -> str:
    """What stands between the launcher and the program."""
    assert list(command.words[-2:]) == PROGRAM
    return shlex.join(command.words[1:-2])


@pytest.mark.parametrize(
    ("vendor", "ranks", "expected"),
    [
        (MPICH, 2, "-n 2 -bind-to core"),
        (MPICH, 4, "-n 4 -bind-to none"),
        (OPEN_MPI, 2, "-n 2 --bind-to core --map-by core"),
        (OPEN_MPI, 4, "-n 4 --bind-to none --oversubscribe"),
        (INTEL, 2, "-n 2"),
    ],
)
def test_ranks_get_a_core_each_where_there_are_enough(tmp_path: Path, vendor: str, ranks: int, expected: str) -> None:
    command = command_for("mpiexec", PROGRAM, ranks, machine=context(tmp_path, vendor))
    assert options(command).split(" -x ")[0] == expected
    assert command.words[0] == str(tmp_path / "mpiexec")
    assert command.name.startswith(f"mpiexec ({vendor} ")
    assert command.local
    assert command.oversubscribed is (ranks > 2)
    assert [note.split(":")[0] for note in command.notes] == (["4 ranks on 2 cores"] if ranks > 2 else [])


@pytest.mark.parametrize(
    ("here", "expected"),
    [
        (TWO, {"I_MPI_PIN": "1", "I_MPI_PIN_DOMAIN": "core"}),
        (Processors(((0, 1),)), {"I_MPI_PIN": "1", "I_MPI_PIN_PROCESSOR_LIST": "all"}),
        (Processors(((4,), (6,), (8,)), restricted=True), {"I_MPI_PIN": "1", "I_MPI_PIN_PROCESSOR_LIST": "4,6"}),
        (Processors(((0,),)), {"I_MPI_PIN": "0"}),
    ],
)
def test_intel_is_told_by_variables(tmp_path: Path, here: Processors, expected: dict[str, str]) -> None:
    command = command_for("mpiexec", PROGRAM, 2, machine=context(tmp_path, INTEL, here=here))
    assert {name: value for name, value in command.environ.items() if name.startswith("I_MPI")} == expected
    mine = command_for("mpiexec", PROGRAM, 2, machine=context(tmp_path, INTEL, here=here, I_MPI_PIN_CELL="unit"))
    assert "I_MPI_PIN" not in mine.environ, "the user's own pinning stays alone"


@pytest.mark.parametrize(
    ("vendor", "mask", "threads"),
    [
        (MPICH, "-bind-to user:4,6", "-bind-to hwthread"),
        (OPEN_MPI, "--map-by pe-list=4,6:ordered", "--use-hwthread-cpus --map-by hwthread --bind-to hwthread"),
    ],
)
def test_masks_and_hardware_threads(tmp_path: Path, vendor: str, mask: str, threads: str) -> None:
    masked = context(tmp_path, vendor, here=Processors(((4,), (6,)), restricted=True))
    assert mask in options(command_for("mpiexec", PROGRAM, 2, machine=masked))
    one_core = context(tmp_path, vendor, here=Processors(((0, 1),)))
    command = command_for("mpiexec", PROGRAM, 2, machine=one_core)
    assert threads in options(command)
    assert not command.oversubscribed and "hardware threads" in command.notes[0]


@pytest.mark.parametrize(
    ("vendor", "hosts"), [(MPICH, "-hosts a:2,b:2"), (OPEN_MPI, "--host a:2,b:2"), (INTEL, "-hosts a:2,b:2")]
)
def test_hosts_get_the_slots_that_the_ranks_need(tmp_path: Path, vendor: str, hosts: str) -> None:
    command = command_for("mpiexec", PROGRAM, 3, hosts=["a", "b"], machine=context(tmp_path, vendor))
    assert hosts in options(command)
    assert not command.local
    assert command.notes == (), "how many cores other nodes have is not known here"
    own = command_for("mpiexec", PROGRAM, 3, hosts=["a:1", "b:2"], machine=context(tmp_path, vendor))
    assert "a:1,b:2" in options(own)
    assert command_for("mpiexec", PROGRAM, 2, hosts=["localhost"], machine=context(tmp_path, vendor)).local


def test_open_mpi_must_be_told_what_to_pass_on(tmp_path: Path) -> None:
    there = context(tmp_path, OPEN_MPI, PYTHONPATH="/p", MINE="1")
    words = command_for("mpiexec", PROGRAM, 2, pass_names=["MINE", "NOT_SET"], machine=there).words
    passed = {words[k + 1] for k, word in enumerate(words) if word == "-x"}
    assert passed == {"OMB_PY_CONTROL", "OMB_PY_TOKEN", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "PYTHONPATH", "MINE"}


def test_open_mpi_passes_to_other_nodes_what_decides_how_ranks_communicate(tmp_path: Path) -> None:
    decides = ["UCX_TLS", "FI_PROVIDER", "LD_LIBRARY_PATH", "MALLOC_ARENA_MAX", "OMB_PY_CACHE_BYTES"]
    others = ["HOME", "SLURM_NTASKS", "PMIX_RANK", "PRTE_MCA_x", "OMPI_COMM_WORLD_RANK", "OMPI_MCA_pml"]
    there = context(tmp_path, OPEN_MPI, **dict.fromkeys([*decides, *others], "1"))

    def passed(host: str) -> list[str]:
        words = command_for("mpiexec", PROGRAM, 2, hosts=[host], machine=there).words
        return [words[k + 1] for k, word in enumerate(words) if word == "-x"]

    assert passed("localhost") == ["OMB_PY_CONTROL", "OMB_PY_TOKEN", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"]
    assert passed("n1") == passed("localhost") + sorted(decides)


def test_an_older_open_mpi_has_other_words(tmp_path: Path) -> None:
    program(tmp_path / "mpiexec", "mpirun (Open MPI) 4.1.4")
    library = MPILibrary(OPEN_MPI, "4.1.4")
    here = Processors(((4,), (6,)), restricted=True)
    there = LaunchMachine({"PATH": str(tmp_path)}, str(tmp_path / "python"), here, lambda python: library, False)
    assert "--cpu-set 4,6 --bind-to core" in options(command_for("mpiexec", PROGRAM, 2, machine=there))


@pytest.mark.parametrize("one", [{}, {"OMPI_ALLOW_RUN_AS_ROOT": "1"}, {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}])
def test_open_mpi_as_root_names_both_variables(tmp_path: Path, one: dict[str, str]) -> None:
    with pytest.raises(EnvironmentProblem) as caught:
        command_for("mpiexec", PROGRAM, 2, machine=context(tmp_path, OPEN_MPI, root=True, **one))
    assert "OMPI_ALLOW_RUN_AS_ROOT=1" in str(caught.value)
    assert "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1" in str(caught.value)
    assert command_for("mpiexec", PROGRAM, 2, machine=context(tmp_path, OPEN_MPI, root=True, **AS_ROOT)).words
    assert command_for("mpiexec", PROGRAM, 2, machine=context(tmp_path, MPICH, root=True)).words


def test_libraries_inside_ranks_use_one_thread_unless_told(tmp_path: Path) -> None:
    environ = command_for("mpiexec", PROGRAM, 2, machine=context(tmp_path, MPICH, OMP_NUM_THREADS="3")).environ
    assert (environ["OMP_NUM_THREADS"], environ["OPENBLAS_NUM_THREADS"]) == ("3", "1")


@pytest.mark.parametrize("vendor", [MPICH, OPEN_MPI])
def test_the_users_own_arguments_win(tmp_path: Path, vendor: str) -> None:
    there = context(tmp_path, vendor)
    command = command_for("mpiexec", PROGRAM, 4, extra=["--bind-to", "socket"], machine=there)
    assert options(command).count("bind-to") == 1
    assert options(command).endswith("--bind-to socket")
    assert command.oversubscribed
    assert not command_for("mpiexec", PROGRAM, 2, extra=["-f", "file"], machine=there).local
    assert "none" in options(command_for("mpiexec", PROGRAM, 2, bind=False, machine=there))


def test_a_batch_system_may_spread_the_ranks(tmp_path: Path) -> None:
    assert not command_for("mpiexec", PROGRAM, 2, machine=context(tmp_path, MPICH, PBS_NODEFILE="/x")).local


def test_mpiexec_gets_the_nodes_of_pbs(tmp_path: Path) -> None:
    file = tmp_path / "nodes"
    file.write_text("n1\nn1\nn2\nn2\n")
    there = context(tmp_path, MPICH, PBS_JOBID="4.pbs", PBS_NODEFILE=str(file))
    command = command_for("auto", PROGRAM, 4, machine=there)
    assert "-hosts n1:2,n2:2" in options(command) and not command.local
    assert "-hosts n3:4" in options(command_for("mpiexec", PROGRAM, 4, hosts=["n3"], machine=there))
    assert "-hosts" not in options(command_for("mpiexec", PROGRAM, 4, extra=["-f", "mine"], machine=there))


@pytest.mark.parametrize(("vendor", "more"), [(MPICH, ""), (OPEN_MPI, " -opmi=pmix")])
def test_auto_is_flux_inside_an_instance(tmp_path: Path, vendor: str, more: str) -> None:
    inside = context(tmp_path, vendor, FLUX_URI="local:///run/flux/local")
    assert command_for("auto", PROGRAM, 2, machine=inside).name.startswith("mpiexec"), "no flux there"
    program(tmp_path / "flux", "")
    command = command_for("auto", PROGRAM, 2, machine=inside)
    assert command.name == "flux run" and not command.local
    assert options(command) == f"run -n 2 -ocpu-affinity=per-task{more}"
    named = command_for("flux", PROGRAM, 4, hosts=["a", "b:2"], bind=False, machine=inside)
    assert options(named) == f"run -n 4 -N 2 --requires=host:a,b -ocpu-affinity=off{more}"


# Slurm

OFFERS = "MPI plugin types are...\n\tnone\n\tpmi2\n\tpmix\nspecific pmix plugin versions available: pmix_v4\n"


def test_auto_is_srun_inside_an_allocation_and_mpiexec_elsewhere(tmp_path: Path) -> None:
    inside = context(tmp_path, MPICH, SLURM_JOB_ID="7")
    assert command_for("auto", PROGRAM, 2, machine=inside).name.startswith("mpiexec"), "no srun there"
    program(tmp_path / "srun", OFFERS)
    program(tmp_path / "cat", "")
    (tmp_path / "cat").unlink()
    inside = dataclasses.replace(inside, environ={**inside.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"})
    command = command_for("auto", PROGRAM, 2, hosts=["a", "b"], machine=inside)
    assert command.name == "srun"
    assert options(command) == (
        "-n 2 --kill-on-bad-exit=1 --export=ALL --input=none -N 2 -w a,b --cpu-bind=cores --mpi=pmi2"
    )
    assert not command.local
    outside = dataclasses.replace(inside, environ={"PATH": inside.environ["PATH"]})
    assert command_for("auto", PROGRAM, 2, machine=outside).name.startswith("mpiexec")


@pytest.mark.parametrize("launcher", ["srun", "flux"])
def test_slots_that_a_batch_system_would_not_keep_are_refused(tmp_path: Path, launcher: str) -> None:
    program(tmp_path / launcher, "")
    there = context(tmp_path, MPICH)
    for hosts in (["n1:3", "n2:1"], ["n1:4", "n2:4"], ["n1:2"]):
        with pytest.raises(UsageError, match=r"takes no slots in --hosts: .*--launcher mpiexec"):
            command_for(launcher, PROGRAM, 4, hosts=hosts, machine=there)
    for hosts in (["n1:2", "n2:2"], ["n1", "n2"], ["n1:8"]):
        assert command_for(launcher, PROGRAM, 4, hosts=hosts, machine=there)
    with pytest.raises(UsageError, match=r"takes no address of IPv6 in --hosts, as fd00::1: give the node's name"):
        command_for(launcher, PROGRAM, 2, hosts=["n1", "fd00::1"], machine=there)


def test_the_users_own_placement_by_srun_wins_over_slots(tmp_path: Path) -> None:
    program(tmp_path / "srun", "")
    there = context(tmp_path, MPICH)
    own = ["--ntasks-per-node=3"]
    command = command_for("srun", PROGRAM, 4, hosts=["n1:3", "n2:1"], extra=own, machine=there)
    assert "-w n1,n2" in options(command)


def test_an_address_of_ipv6_has_no_slots(tmp_path: Path) -> None:
    command = command_for("mpiexec", PROGRAM, 2, hosts=["fd00::1", "n2"], machine=context(tmp_path, MPICH))
    assert "-hosts fd00::1,n2:1" in options(command)
    assert command_for("mpiexec", PROGRAM, 2, hosts=["::1"], machine=context(tmp_path, MPICH)).local


@pytest.mark.parametrize(
    ("step", "hosts", "more"),
    [("0", "", True), ("4294967291", "", False), ("", "", False), ("", "n1", True), ("", "n1 n2", False)],
)
def test_srun_shares_the_cores_of_other_steps(tmp_path: Path, step: str, hosts: str, more: bool) -> None:
    """Of the step around it, and of one that holds them because it has lost a node: without that, every node of a job
    in which one was lost seemed to be lost."""
    program(tmp_path / "srun", "")
    there = context(tmp_path, MPICH, SLURM_STEP_ID=step, SLURM_JOB_NODELIST="n[1-2]")
    command = command_for("srun", PROGRAM, 2, hosts=hosts.split(), machine=there)
    assert ("--overlap" in command.words) is more


def test_crays_mpich_has_a_type_of_its_own() -> None:
    text = "MPI VERSION    : CRAY MPICH version 8.1.28.15 (ANL base 3.4a2)"
    assert srun_type(MPICH, ["pmi2", "cray_shasta"], text) == "cray_shasta"
    assert srun_type(MPICH, ["pmi2"], text) == "pmi2"
    assert srun_type(MPICH, ["pmi2", "cray_shasta"], "MPICH Version: 4.2") == "pmi2"


@pytest.mark.parametrize(
    ("hosts", "extra", "more", "says"),
    [
        (["cn01", "cn09"], [], {}, r"Slurm job 7 has no cn09: leave it out of --hosts; its nodes are cn01, cn02"),
        (["cn01"], [], {"SLURM_HET_SIZE": "2"}, "the job is heterogeneous"),
        (["cn01", "cn02"], [], {}, ""),
        (["cn09"], ["--het-group=1"], {"SLURM_HET_SIZE": "2"}, ""),
        (["cn09"], [], {"SLURM_JOB_NODELIST": ""}, ""),
    ],
)
def test_srun_is_not_asked_for_what_the_job_lacks(
    hosts: list[str], extra: list[str], more: dict[str, str], says: str, tmp_path: Path
) -> None:
    program(tmp_path / "srun", "")
    there = context(tmp_path, MPICH, **{"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "cn[01-02]", **more})
    if says:
        with pytest.raises(UsageError, match=says):
            command_for("srun", PROGRAM, 2, hosts=hosts, extra=extra, machine=there)
    else:
        assert command_for("srun", PROGRAM, 2, hosts=hosts, extra=extra, machine=there).name == "srun"


def test_sruns_mpi_type_is_the_users_if_given(tmp_path: Path) -> None:
    program(tmp_path / "srun", OFFERS)
    there = context(tmp_path, OPEN_MPI, SLURM_JOB_ID="7", SLURM_PTY_PORT="1")
    there = dataclasses.replace(there, environ={**there.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert options(command_for("srun", PROGRAM, 2, machine=there)).endswith("--overlap --cpu-bind=cores --mpi=pmix")
    own = command_for("srun", PROGRAM, 2, extra=["--mpi=pmix_v4", "--cpu-bind=none"], machine=there)
    assert options(own).endswith("--overlap --mpi=pmix_v4 --cpu-bind=none")
    program(tmp_path / "srun", "MPI plugin types are...\n\tnone\n\tpmi2\n")
    assert "no --mpi type for Open MPI" in command_for("srun", PROGRAM, 2, machine=there).notes[0]


@pytest.mark.parametrize(
    ("vendor", "offered", "kind"),
    [
        (OPEN_MPI, ["pmi2", "pmix_v4", "pmix"], "pmix"),
        (OPEN_MPI, ["pmi2"], ""),
        (MPICH, ["pmi2", "pmix"], "pmi2"),
        (MPICH, ["pmix"], "pmix"),
        (INTEL, ["pmix"], ""),
        (INTEL, [], ""),
    ],
)
def test_which_type_of_srun_fits_which_library(vendor: str, offered: list[str], kind: str) -> None:
    assert srun_type(vendor, offered) == kind


# the others


def test_no_launcher_is_for_one_rank(tmp_path: Path) -> None:
    there = context(tmp_path, MPICH)
    assert command_for("none", PROGRAM, 1, machine=there).words == tuple(PROGRAM)
    with pytest.raises(UsageError, match="starts 1 rank, not 2"):
        command_for("none", PROGRAM, 2, machine=there)


def test_torchrun_starts_any_command_on_this_machine(tmp_path: Path) -> None:
    there = context(tmp_path, MPICH)
    program(tmp_path / "python", "", status=1)
    with pytest.raises(EnvironmentProblem, match="torchrun not found: pip install"):
        command_for("torchrun", PROGRAM, 2, machine=there)
    program(tmp_path / "python", "")
    command = command_for("torchrun", PROGRAM, 2, machine=there)
    assert options(command) == "-m torch.distributed.run --standalone --nproc-per-node=2 --max-restarts=0 --no-python"
    with pytest.raises(UsageError, match="this machine only"):
        command_for("torchrun", PROGRAM, 2, hosts=["a"], machine=there)


def test_ranks_without_mpi_are_started_by_torchrun_where_mpi_cannot(tmp_path: Path) -> None:
    program(tmp_path / "python", "")
    there = context(tmp_path, MPICH)
    bare = dataclasses.replace(
        there, find_library=lambda python: MPILibrary(reason="mpi4py finds no MPI library", fix="install")
    )
    root = context(tmp_path, OPEN_MPI, root=True)
    for machine in (bare, root):
        assert command_for("auto", PROGRAM, 2, needs_mpi=False, machine=machine).name == "torchrun"
        with pytest.raises(EnvironmentProblem):
            command_for("auto", PROGRAM, 2, machine=machine)
        with pytest.raises(EnvironmentProblem):  # asked for, so not replaced by another
            command_for("mpiexec", PROGRAM, 2, needs_mpi=False, machine=machine)
        with pytest.raises(EnvironmentProblem):  # torchrun has no host list
            command_for("auto", PROGRAM, 2, hosts=["a"], needs_mpi=False, machine=machine)
    program(tmp_path / "mpiexec", SAYS[MPICH])
    assert command_for("auto", PROGRAM, 2, needs_mpi=False, machine=there).name.startswith("mpiexec")


def test_an_unknown_launcher_gets_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="did you mean mpiexec"):
        command_for("mpiexce", PROGRAM, 2, machine=context(tmp_path, MPICH))
    with pytest.raises(EnvironmentProblem, match="srun not found"):
        command_for("srun", PROGRAM, 2, machine=context(tmp_path, MPICH))


def test_the_report_for_doctor_says_why_not(tmp_path: Path) -> None:
    program(tmp_path / "python", "", status=1)
    report = report_launchers(context(tmp_path, OPEN_MPI, root=True))
    assert list(report) == ["mpiexec", "srun", "flux", "torchrun", "none"]
    assert "as root" in report["mpiexec"] and "not found" in report["srun"] and report["none"] == ""


# real launches with the library of this Python

RANK = """
import os, signal, sys, time
mode = sys.argv[1]
from omb_py.engine.rank.link import Link
environment_rank = int(os.environ.get("OMPI_COMM_WORLD_RANK", os.environ.get("PMI_RANK", "-1")))
if mode == "dies unheard" and environment_rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
link = Link.from_environment(10)
spec = link.spec()
if mode == "dies after hello" and environment_rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
import mpi4py
mpi4py.rc.finalize = False
from mpi4py import MPI
world = MPI.COMM_WORLD
link.joined(world.rank, world.size)
where = {"phase": "loop", "cell": 0, "label": "barrier", "iteration": 0, "step": 0, "doing": "barrier"}
link.watch(lambda: where)
shared = [line.split()[-1] for line in open("/proc/self/maps") if "/dev/shm/" in line]
link.send("launch", facts={"shared": [path for path in shared if os.path.exists(path)]})
link.send("note", text=str(sorted(os.sched_getaffinity(0))) + os.environ["OMP_NUM_THREADS"])
print("printed by a rank", flush=True)
victim = world.rank == 1
for k in range(3 if mode == "fine" else 10**9):
    if k == 20 and victim:
        if mode == "dies in the loop": os.kill(os.getpid(), signal.SIGKILL)
        if mode == "crashes": os.kill(os.getpid(), signal.SIGSEGV)
        if mode == "exits 5": os._exit(5)
        if mode == "launcher dies":
            parent = pid = os.getpid()
            while parent != int(os.environ["SUPERVISOR_PID"]):
                pid, parent = parent, int(open(f"/proc/{parent}/stat").read().rpartition(")")[2].split()[1])
            os.kill(pid, signal.SIGKILL)
    where["iteration"] = k
    world.Barrier()
    if mode != "fine": time.sleep(0.001)
code = link.done()
MPI.Finalize()
sys.exit(code)
"""

real = [pytest.mark.mpi, pytest.mark.each_library]


class Real:
    """A launch of real ranks."""

    def __init__(self, folder: Path) -> None:
        self.script = folder / "rank.py"
        self.script.write_text(RANK)
        self.notes: list[str] = []
        self.shared: list[str] = []

    def context(self) -> LaunchMachine:
        return LaunchMachine({**os.environ, **AS_ROOT})

    def command(self, mode: str, ranks: int) -> LaunchCommand:
        return command_for("mpiexec", [sys.executable, str(self.script), mode], ranks, machine=self.context())

    def run(self, mode: str, ranks: int = 2, timeout: float = PATIENCE_S, command: list[str] | None = None) -> Outcome:
        built = self.command(mode, ranks)
        supervisor = Supervisor(
            {"beat_s": 0.1},
            ranks,
            timeout,
            command=command or built.words,
            environ={**built.environ, "SUPERVISOR_PID": str(os.getpid())},
            handlers=Handlers(
                note=lambda message: self.notes.append(message["text"]),
                launch=lambda message: self.shared.extend(message["facts"]["shared"]),
            ),
            launcher=built.name,
        )
        try:
            return supervisor.run()
        finally:
            assert processes.holders(supervisor.token) == []


@pytest.fixture
def launch(tmp_path: Path) -> Real:
    return Real(tmp_path)


class TestReal:
    """With the mpiexec and the library of this Python."""

    pytestmark = real

    def test_each_rank_has_a_core(self, launch: Real) -> None:
        ranks = min(2, len(os.sched_getaffinity(0)))
        outcome = launch.run("fine", ranks)
        assert outcome.status == 0, outcome
        assert outcome.notes == ()
        assert outcome.output.count("printed by a rank") == ranks
        cores = [note.rpartition("]")[0] for note in launch.notes]
        assert len(set(cores)) == ranks and all("," not in core for core in cores), cores
        assert {note[-1] for note in launch.notes} == {"1"}, "one thread"

    @pytest.mark.faults
    @pytest.mark.parametrize(
        ("mode", "words"),
        [
            ("dies in the loop", ["rank 1 on", "died", "killed by signal 9 (SIGKILL)", "barrier, loop", "dmesg"]),
            pytest.param("dies unheard", ["of 2 ranks"], marks=pytest.mark.slow),
            pytest.param("dies after hello", ["rank 1 on", "died"], marks=pytest.mark.slow),
            pytest.param("crashes", ["rank 1 on", "died", "barrier, loop"], marks=pytest.mark.slow),
            pytest.param("exits 5", ["rank 1 on", "died", "barrier, loop"], marks=pytest.mark.slow),
            pytest.param("launcher dies", ["launcher mpiexec", "killed by signal 9"], marks=pytest.mark.slow),
        ],
    )
    def test_a_death_is_named(self, launch: Real, mode: str, words: list[str]) -> None:
        with pytest.raises(LaunchFailed) as caught:
            # Intel's mpiexec overlooks a death before MPI starts: then the timeout finds it
            launch.run(mode, timeout=5.0 if mode == "dies unheard" else PATIENCE_S)
        assert [word for word in words if word not in str(caught.value)] == [], caught.value
        if mode == "dies in the loop" and INTEL not in launch.command("fine", 2).name:  # Intel unlinks its own early
            assert launch.shared
        assert [path for path in launch.shared if os.path.exists(path)] == [], "shared memory of killed ranks"

    @pytest.mark.slow
    def test_worlds_of_one_are_told_apart_from_a_launch(self, launch: Real) -> None:
        """Two processes that no launcher brought together: each is a world of its own."""
        starter = launch.script.with_name("starter.py")
        starter.write_text(
            "import subprocess, sys\n"
            "children = [subprocess.Popen(sys.argv[1:]) for _ in range(2)]\n"
            "sys.exit(max(child.wait() for child in children))\n"
        )
        command = [sys.executable, str(starter), sys.executable, str(launch.script), "fine"]
        with pytest.raises(LaunchFailed, match=r"2 processes each see 1 rank: the launcher .* do not belong together"):
            launch.run("fine", command=command)
