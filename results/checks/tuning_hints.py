"""Settings that make a library use another algorithm: hints for violated guidelines.

Names are those of Open MPI 5 (``ompi_info --param coll tuned --level 9``), MPICH 5 (``mpivars``), Intel MPI 2021 (its
reference of ``I_MPI_ADJUST``) and NCCL 2; the number or word is the algorithm that works as the faster mock-up does.
"""

from __future__ import annotations

from collections.abc import Mapping

OPEN_MPI, MPICH, INTEL, NCCL = "Open MPI", "MPICH", "Intel MPI", "NCCL"
_TUNED = "OMPI_MCA_coll_tuned_use_dynamic_rules=1 OMPI_MCA_coll_tuned_{op}_algorithm={value}"
_WORKS_AS: Mapping[str, Mapping[str, str]] = {
    OPEN_MPI: {
        "gl1_allgather": "1",
        "gl5_allreduce": "2",
        "gl6_allreduce": "6",
        "gl7_allreduce": "6",
        "gl9_bcast": "8",
        "gl15_reduce": "7",
        "gl16_reduce": "7",
        "gl17_reduce_scatter_block": "1",
        "gl20_reduce_scatter": "1",
        "split_bcast": "3",
        "split_reduce": "3",
        "split_allreduce": "5",
    },
    MPICH: {
        "gl6_allreduce": "reduce_scatter_allgather",
        "gl7_allreduce": "reduce_scatter_allgather",
        "gl9_bcast": "scatter_ring_allgather",
        "gl15_reduce": "reduce_scatter_gather",
        "gl16_reduce": "reduce_scatter_gather",
        "split_bcast": "pipelined_tree",
    },
    INTEL: {
        "gl1_allgather": "4",
        "gl5_allreduce": "3",
        "gl6_allreduce": "2",
        "gl7_allreduce": "2",
        "gl15_reduce": "5",
        "gl16_reduce": "5",
        "gl20_reduce_scatter": "4",
        "split_bcast": "3",
    },
}
"""Library -> guideline -> algorithm that works as the guideline's right side does."""
_HAN = "or without the hierarchical component: OMPI_MCA_coll=^han"


def advice(library: str, guideline: str) -> str:
    """Say what to try where a guideline is violated; empty for a library without known settings.

    Args:
        library: name of the library as in the store.
        guideline: name of the guideline, as ``gl5_allreduce``; the part after the first underscore is the collective.
    """
    if library == NCCL:
        return "try NCCL_ALGO=Ring or Tree, and NCCL_PROTO=LL, LL128 or Simple"
    if library not in _WORKS_AS:
        return ""
    if library == OPEN_MPI and guideline.startswith("gl24node"):
        return "try the hierarchical component: OMPI_MCA_coll_han_priority=100"
    op, value = guideline.partition("_")[2], _WORKS_AS[library].get(guideline)
    if library == OPEN_MPI:
        if value is None:
            return f"try the values of {_TUNED.format(op=op, value='N')} ({_HAN})"
        return f"try {_TUNED.format(op=op, value=value)} ({_HAN})"
    name = f"MPIR_CVAR_{op.upper()}_INTRA_ALGORITHM" if library == MPICH else f"I_MPI_ADJUST_{op.upper()}"
    return f"try {name}={value}" if value else f"try the values of {name}"
