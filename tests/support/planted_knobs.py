"""Knobs as three libraries list them, a few of each, so that no library is loaded."""

from __future__ import annotations

from typing import Any

from omb_py.backends.capabilities import LibraryKnobs
from omb_py.backends.mpi.tools.knobs import knobs_of
from omb_py.backends.nccl.capabilities import library_knobs

NEEDS = "Only relevant if coll_tuned_use_dynamic_rules is true."
SELECTION = "auto - Internal algorithm selection (can be overridden with MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE)"


def cvar(name: str, type: str = "INT", value: str = "0", description: str = "", **more: Any) -> dict[str, Any]:
    """A control variable as the child process lists it."""
    usual = {"verbosity": "user basic", "scope": "all_eq", "category": "COLLECTIVE", "items": []}
    return {"name": name, "type": type, "value": value, "description": description, **usual, **more}


def enumerated(name: str, words: str, description: str = NEEDS) -> dict[str, Any]:
    """An enumeration of Open MPI."""
    items = list(enumerate(words.split()))
    return cvar(name, value=words.split()[0], description=description, scope="all", category="ompi", items=items)


PVAR = {
    "name": "pml_monitoring_messages_count",
    "kind": "size",
    "type": "UNSIGNED_LONG",
    "object": "communicator",
    "verbosity": "tuner detail",
    "category": "ompi_pml_monitoring",
    "description": "Number of messages sent to each peer through the PML framework.",
}
OPEN_MPI = {
    "library": "Open MPI",
    "version": "5.0.11",
    "cvars": [
        enumerated("coll_tuned_allreduce_algorithm", "ignore basic_linear nonoverlapping recursive_doubling ring"),
        cvar("coll_tuned_allreduce_algorithm_segmentsize", description="Segment size in bytes.", scope="all"),
        enumerated("coll_tuned_bcast_algorithm", "ignore basic_linear chain pipeline"),
        enumerated("coll_tuned_barrier_algorithm", "ignore linear double_ring"),
        enumerated("coll_libnbc_iallreduce_algorithm", "ignore ring binomial", "Which iallreduce algorithm is used"),
        cvar("coll_tuned_use_dynamic_rules", "C_BOOL", "false", "Switch", items=[(0, "false"), (1, "true")]),
        cvar("coll_tuned_priority", value="30"),
        cvar("coll_han_priority", value="35"),
        cvar("coll_self_priority", value="75"),
        cvar("coll_tuned_major_version", value="5", scope="constant"),
    ],
    "pvars": [PVAR],
}
MPICH = {
    "library": "MPICH",
    "version": "5.0.2",
    "cvars": [
        cvar(
            "MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM",
            description=f"Variable to select allreduce algorithm\n{SELECTION}\nnb                 - Force nonblocking "
            "algorithm\nrecexch            - Force recursive exchange\nring               - Force ring algorithm\n"
            "tree               - Force pipelined tree algorithm\nccl                - Force CCL algorithm",
        ),
        cvar("MPIR_CVAR_ALLREDUCE_INTER_ALGORITHM", description=f"Variable\n{SELECTION}\nnb - Force nonblocking"),
        cvar("MPIR_CVAR_ALLREDUCE_DEVICE_COLLECTIVE", value="1", description="Whether the device may override"),
        cvar("MPIR_CVAR_ALLREDUCE_RECEXCH_KVAL", value="2", description="k value for recursive exchange"),
        cvar("MPIR_CVAR_ALLREDUCE_RECEXCH_SINGLE_PHASE_RECV", value="0"),
        cvar("MPIR_CVAR_ALLREDUCE_TREE_TYPE", "CHAR", "knomial_1", "Tree type kary - kary tree knomial_1 - other tree"),
        cvar("MPIR_CVAR_ALLREDUCE_TREE_KVAL", value="2"),
        cvar("MPIR_CVAR_ALLREDUCE_TREE_PIPELINE_CHUNK_SIZE", value="0", description="Value 0, that is, 1 chunk"),
        cvar("MPIR_CVAR_ALLREDUCE_TREE_BUFFER_PER_CHILD", value="0"),
        cvar("MPIR_CVAR_ALLREDUCE_TOPO_OVERHEAD", value="200"),
        cvar("MPIR_CVAR_ALLREDUCE_TOPO_DIFF_GROUPS", value="2800"),
        cvar("MPIR_CVAR_ALLREDUCE_TOPO_DIFF_SWITCHES", value="1500"),
        cvar("MPIR_CVAR_ALLREDUCE_TOPO_SAME_SWITCHES", value="1400"),
        cvar(
            "MPIR_CVAR_ALLREDUCE_COMPOSITION",
            description="Select composition for Allreduce 0 Auto selection 1 NM + SHM between rank 0 and root 2 NM "
            "only composition 3 SHM only composition",
        ),
        cvar("MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE", "CHAR", "", "Defines the location of tuning file."),
    ],
    "pvars": [],
}
INTEL = {
    "library": "Intel MPI",
    "version": "2021.16.0",
    "cvars": [
        cvar(
            "MPIR_CVAR_BCAST_NODE_KARY_RADIX",
            description="K value\n@Verbosity:# expert\n@Alias:# I_MPI_ADJUST_BCAST_NODE_KARY_RADIX\n@Default:# -1",
        ),
        cvar("I_MPI_PIN", description="@Default:# 1"),
    ],
    "pvars": [],
}


def open_mpi() -> LibraryKnobs:
    """Of Open MPI: an algorithm of two components, switches, priorities."""
    return knobs_of(OPEN_MPI)


def mpich(*trees: str) -> LibraryKnobs:
    """Of MPICH: allreduce with its algorithms and their parameters."""
    return knobs_of(MPICH, trees)


def intel() -> LibraryKnobs:
    """Of Intel MPI."""
    return knobs_of(INTEL)


def nccl() -> LibraryKnobs:
    """Of NCCL."""
    return library_knobs()
