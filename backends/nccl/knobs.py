"""What can be set in NCCL and RCCL by the environment: a declared list with its source, since they list nothing."""

from __future__ import annotations

import os
from typing import Final

from omb_py.backends.knobs import Choice, Knob, LibraryKnobs
from omb_py.backends.nccl.options import ALGORITHMS, PROTOCOLS

_GUIDE: Final = "NCCL user guide, Environment Variables (docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html)"
_DECLARED: Final = (
    ("NCCL_ALGO", ALGORITHMS, "", "Algorithms to choose from, several with commas; ^ in front: all but these."),
    ("NCCL_PROTO", PROTOCOLS, "", "Protocols to choose from, several with commas; ^ in front: all but these."),
    ("NCCL_MIN_CTAS", (), "", "Fewest CTAs (channels) that the library uses; from 2.17 on."),
    ("NCCL_MAX_CTAS", (), "", "Most CTAs (channels) that the library uses; from 2.17 on."),
    ("NCCL_NTHREADS", ("64", "128", "256", "512"), "", "Threads of a CTA."),
    ("NCCL_BUFFSIZE", (), "4194304", "Bytes of the buffer between two GPUs."),
    ("NCCL_NCHANNELS_PER_NET_PEER", (), "", "Channels to each peer over the network; -1: the library's choice."),
    ("NCCL_NVLS_ENABLE", ("0", "1", "2"), "2", "NVLink SHARP: never, always, or where it works."),
    ("NCCL_CROSS_NIC", ("0", "1", "2"), "2", "Whether rings and trees may use several NICs of a node."),
    ("NCCL_P2P_NET_CHUNKSIZE", (), "131072", "Bytes of a chunk of sends and receives over the network."),
    ("NCCL_IB_QPS_PER_CONNECTION", (), "1", "Queue pairs of each connection over InfiniBand."),
)
"""Name, values, default, and meaning."""
ALGORITHM_KNOBS: Final = ("NCCL_ALGO", "NCCL_PROTO")


def library_knobs() -> LibraryKnobs:
    """The declared list with the values of this environment. No library is loaded."""
    knobs = tuple(
        Knob(
            name,
            "enum" if words else "int",
            os.environ.get(name, default),
            name,
            tuple(map(Choice, words)),
            category="algorithm" if name in ALGORITHM_KNOBS else "",
            description=meaning,
            source=_GUIDE,
        )
        for name, words, default, meaning in _DECLARED
    )
    return LibraryKnobs("nccl", "NCCL or RCCL", how="a declared list", knobs=knobs, joined=True)
