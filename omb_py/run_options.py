"""The options of :func:`omb_py.run`, as ``python -m tests.options.run_options`` makes them of the table."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypedDict


class RunOptions(TypedDict, total=False):
    """Options of a measurement, by name. Those that are not given have the default of the benchmark or the backend."""

    placement: str
    """Places of the buffers of sender and receiver, as ``D H``."""
    validation_log: Path | None
    """Folder for a log of wrong bytes, which must not exist yet."""
    settings: Mapping[str, str]
    """Backend -> text of its own option."""
    backends: str | Sequence[str]
    """Communication libraries: mpi, gloo, nccl, oneccl, ucc, mock; several take turns."""
    bindings: str | Sequence[str]
    """Who issues the calls: native, mpi4py, torch, cupy, nccl4py; several take turns."""
    sizes: str | int | Sequence[int] | None
    """Bytes: MAX, MIN:MAX, MIN:MAX:FACTOR or A,B,C, as 4K, 1MiB, 2^20; 8:8 is one size."""
    dtypes: str | Sequence[str]
    """Element types: char, int8 to int64, uint8 to uint64, float16 to float64, bfloat16, float8e4m3, float8e5m2,
    complex64, complex128, mpi_int, …; all: char, int32, float32."""
    op: str | None
    """Reductions: sum, prod, min, max, land, lor, lxor, band, bor, bxor; NCCL's avg, mulsum; Gloo's avg."""
    window: int | None
    """Messages in flight."""
    window_kind: str | None
    """How the window is made: create, allocate, dynamic, shared."""
    sync: str | None
    """What completes the operation: flush, flush_local, lock, lock_all, pscw, fence."""
    mean: str | None
    """What the printed mean holds: loop, the whole loop with two readings of the clock an iteration, as in OMB;
    lap, the operation with one."""
    in_place: bool
    """Use MPI_IN_PLACE."""
    root: int | None
    """The root; rotate: another one in every iteration."""
    vary_window: bool
    """Windows 1, 2, 4, 8, 16, 32, 64, 128 in turn, in two tables."""
    buffer_num: str | None
    """single: one buffer to send and one to receive; multiple: one of each for every message of a window, or for up
    to 64 iterations in turn."""
    ddt: str | None
    """Derived datatype of a message: cont, vect:STRIDE:BLOCK, or indx:FILE with lines DISPLACEMENT, LENGTH; in
    elements, repeated as often as it fits. once:FILE has each piece once, as OMB's indx."""
    partitions: int | None
    """Parts of a message."""
    thread_counts: str | None
    """Threads that send on rank 0 and that receive on rank 1; in IMB-MT's benchmarks R on every rank."""
    process_counts: str | None
    """Forked children that sleep beside rank 0 and beside rank 1."""
    tests: int | None
    """Calls of MPI_Test between pieces of the computing."""
    imbalance: float | None
    """Blocks of different sizes: from (1 - F) times the size on rank 0 to (1 + F) times on the last."""
    traffic: str | None
    """What each rank sends to each: a line of N numbers for each of N ranks; their mean is the message size.
    spread:F, from 0 to 1, is the pattern of nccl-tests."""
    groups: str | None
    """Several groups of ranks run at once, each on a communicator of its own: 4x2 (four of two ranks), mod:8,
    div:8, and:0x7, or:0x7, node, gpu, or each rank's color, as color:0,0,1,1."""
    neighborhood: str | None
    """Neighbors: cart:DIMENSIONS:RADIUS, or graph:FILE with lines SOURCE, TARGET."""
    workload: str | None
    """What a step asks for, as ddp:model=resnet50; omb-py workloads lists names and keys."""
    cache: str | None
    """hot: the same buffers every time, as in OMB; rotate: others each time, over twice the last-level cache."""
    filler: str | None
    """What computes meanwhile: cpu, gpu, both (both of them)."""
    timing: str | None
    """With --backend nccl, where calls return before they are done: isolated, pipelined, graph, event,
    spin-gated."""
    batch: int | None
    """Calls of a sample that is pipelined, a graph or spin-gated."""
    nccl: str
    """With --backend nccl: registration, cta_policy, min_ctas, max_ctas, algorithm, protocol, communicators,
    aggregate, replays, method, unaligned, log (docs/nccl.md)."""
    process_sync: str | None
    """Between iterations, untimed: barrier, dissemination (made of messages), roundtime (a common clock), none."""
    ranks: int | None
    """Number of ranks."""
    device: str
    """Where buffers live: cpu, cuda, rocm; managed is managed memory of the GPU. Several take turns."""
    share_device: bool
    """Let several ranks use one device; rows are labelled."""
    staging: str | None
    """MPI on a device: auto copies through the host where the library takes no device buffers; never: exit 3."""
    buffer: str
    """What holds the bytes: numpy, bytearray, array, torch, object (pickled); on a device also cupy, torch,
    numba."""
    object_kind: str | None
    """With --buffer object: what is pickled: bytes, ndarray, list, dict, dataclass."""
    out_of_band: bool
    """With --buffer object: send large buffers beside the pickle (mpi4py.util.pkl5)."""
    hosts: str | Sequence[str]
    """Hosts to start ranks on, with commas."""
    launcher: str
    """What starts the ranks: auto, mpiexec, srun, flux, torchrun, none."""
    launcher_args: str | Sequence[str]
    """Words for it, as one text: '--bind-to none'."""
    thread_level: str | None
    """MPI thread level to ask for: single, funneled, serialized, multiple."""
    session: bool
    """Begin with an MPI session (MPI-4) instead of MPI_Init."""
    iterations: str | int
    """N; omb, which is OMB's count; auto, which may stop earlier, once the median is known to --precision; or
    SIZE:N,…,0:N, with N for messages up to SIZE and the last for larger ones."""
    warmup: int | None
    """Iterations before the timed ones."""
    precision: float
    """Half-width of the 95 % interval of the median at which auto stops."""
    time_limit: float | None
    """Longest loop of one message size with auto: 30, 500ms, 2m."""
    repeat_for: float | None
    """Soak: measure all sizes again and again in one launch: for 10m, 2h, or 3x, three times."""
    launches: int
    """Start the ranks N times; several backends or bindings take turns."""
    seed: int | None
    """For everything random."""
    validate: bool
    """Check every byte. -clog:DIR writes what is wrong to a new folder (validation_output)."""
    energy: bool
    """Energy per operation of hosts (RAPL) and GPUs (NVML, amdsmi), and whether they were throttled."""
    counters: bool
    """What the network counts in the loop of each size: bytes on the wire, retransmits, errors."""
    pvars: str | None
    """What the library counts in the loop of each size; omb-py knobs --pvars lists names. Repeat it."""
    timeout: float
    """End the run when a rank makes no progress for so long."""
    quiet: bool
    """No progress and no notes on stderr."""
    mock: str
    """Settings of the simulated cluster of --backend mock."""
