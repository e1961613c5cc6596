"""Options that say where ranks and buffers are."""

from __future__ import annotations

from omb_py.engine.devices.registry import KINDS as DEVICES
from omb_py.engine.program.buffers import BUFFERS, OBJECTS, ON_DEVICE
from omb_py.launchers.registry import CHOICES as LAUNCHERS
from omb_py.options.measured import moves_data
from omb_py.options.option import Option, under
from omb_py.options.readers import Reader, join_list, parse_hosts, parse_launcher_words, whole, word
from omb_py.options.request import DEFAULT_RANKS

THREAD_LEVELS = ("single", "funneled", "serialized", "multiple")
STAGINGS = ("auto", "never")
MANAGED = "managed"
"""OMB's word for a GPU with all buffers in managed memory."""

PLACED = under(
    "Where",
    Option(
        "ranks",
        "-n --ranks",
        lambda d: f"Number of ranks; {d.benchmark.name} takes {d.benchmark.ranks.text}.",
        "N",
        whole("ranks", 1),
        default=f"{DEFAULT_RANKS}, or what the launcher around it started",
    ),
    Option(
        "device",
        "-d --device",
        f"Where buffers live: {', '.join(DEVICES)}; managed is managed memory of the GPU. Several take turns.",
        "LIST",
        join_list("device", (*DEVICES, MANAGED)),
    ),
    Option("share_device", "--share-device", "Let several ranks use one device; rows are labelled.", rare=True),
    Option(
        "staging",
        "--staging",
        "MPI on a device: auto copies through the host where the library takes no device buffers; never: exit 3.",
        "KIND",
        word("staging", STAGINGS),
        default=STAGINGS[0],
        usual="",
        rare=True,
    ),
    Option(
        "buffer",
        "--buffer",
        f"What holds the bytes: {', '.join(BUFFERS)} (pickled); on a device also {', '.join(ON_DEVICE)}.",
        "KIND",
        word("buffer", tuple(dict.fromkeys((*BUFFERS, *ON_DEVICE))), closed=False),
        cell="identity",
        column="buffer",
        rare=True,
    ),
    Option(
        "object_kind",
        "--object",
        f"With --buffer object: what is pickled: {', '.join(OBJECTS)}.",
        "KIND",
        word("object", OBJECTS),
        takers=moves_data,
        usual="bytes",
        lacks="objects",
        cell="options",
        rare=True,
    ),
    Option(
        "out_of_band",
        "--out-of-band",
        "With --buffer object: send large buffers beside the pickle (mpi4py.util.pkl5).",
        takers=moves_data,
        usual=False,
        lacks="objects",
        cell="options",
        rare=True,
    ),
    Option(
        "hosts",
        "--hosts",
        "Hosts to start ranks on, with commas.",
        "LIST",
        Reader("host", parse_hosts),
        default="this one, or those of the batch job",
        scope="run",
    ),
    Option(
        "launcher",
        "--launcher",
        f"What starts the ranks: {', '.join(LAUNCHERS)}.",
        "NAME",
        word("launcher", LAUNCHERS),
        scope="run",
    ),
    Option(
        "launcher_args",
        "--launcher-args",
        "Words for it, as one text: '--bind-to none'.",
        "TEXT",
        Reader("text", parse_launcher_words),
        default="",
        scope="run",
    ),
    Option(
        "own_mpi",
        "--mpi",
        "Your own MPI: a prefix, libmpi or mpiexec.",
        "PATH",
        Reader("path", str),
        default="",
        scope="line",
        makes=lambda path: {},
    ),
    Option(
        "thread_level",
        "--thread-level",
        f"MPI thread level to ask for: {', '.join(THREAD_LEVELS)}.",
        "LEVEL",
        word("thread level", THREAD_LEVELS),
        default=lambda d: f"{d.benchmark.needs.thread_level}; with binding mpi4py multiple",
        column="thread_level",
        rare=True,
    ),
    Option(
        "session",
        "-I --session",
        "Begin with an MPI session (MPI-4) instead of MPI_Init.",
        usual=False,
        cell="options",
        rare=True,
    ),
)
