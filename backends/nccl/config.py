"""NCCL's configurations as it lays them out (nccl.h 2.17 to 2.32): a version number and the fields known then."""

from __future__ import annotations

import ctypes
from typing import Final

from omb_py.backends.nccl.options import POLICIES, Settings

MAGIC: Final = 0xCAFEBEEF
UNDEFINED: Final = -(2**31)
"""``NCCL_CONFIG_UNDEF_INT``."""
PEERS_SINCE: Final = (2, 30, 0)
"""First version with ``maxP2pPeers``."""
PER_CALL_SINCE: Final = (2, 32, 0)
"""First version with the layout of :class:`CollectiveConfig`; the calls are a release older."""
_SELECTED: Final = {"collnetdirect": "collnet_direct", "collnetchain": "collnet_chain", "nvls": "nvls_"}
"""Words of NCCL_ALGO -> names of a call's configuration, where they differ: these are beginnings, as of NVLS_SIMPLE."""
_INT, _TEXT = ctypes.c_int, ctypes.c_char_p
_OF_2_17: Final = (
    ("size", ctypes.c_size_t),
    ("magic", ctypes.c_uint),
    ("version", ctypes.c_uint),
    ("blocking", _INT),
    ("cgaClusterSize", _INT),
    ("minCTAs", _INT),
    ("maxCTAs", _INT),
    ("netName", _TEXT),
    ("splitShare", _INT),
)
_OF_2_27: Final = (
    ("trafficClass", _INT),
    ("commName", _TEXT),
    ("collnetEnable", _INT),
    ("CTAPolicy", _INT),
    ("shrinkShare", _INT),
    ("nvlsCTAs", _INT),
)
_OF_2_30: Final = (
    ("nChannelsPerNetPeer", _INT),
    ("nvlinkCentricSched", _INT),
    ("graphUsageMode", _INT),
    ("numRmaCtx", _INT),
    ("maxP2pPeers", _INT),
    ("graphStreamOrdering", _INT),
)


class Config217(ctypes.Structure):
    """``ncclConfig_v21700``, its last four bytes undefined: there newer versions have their next field."""

    _fields_ = (*_OF_2_17, ("padding", _INT))


class Config227(ctypes.Structure):
    """``ncclConfig_v22700``: what newer versions take too, as fields are only ever added."""

    _fields_ = (*_OF_2_17, *_OF_2_27)


class Config230(ctypes.Structure):
    """``ncclConfig_v23000``."""

    _fields_ = (*_OF_2_17, *_OF_2_27, *_OF_2_30)


class CollectiveConfig(ctypes.Structure):
    """``ncclCollConfig_v23200``."""

    _fields_ = (
        ("size", ctypes.c_size_t),
        ("magic", ctypes.c_uint),
        ("version", ctypes.c_uint),
        ("ext", ctypes.c_void_p),
        ("minCTAs", _INT),
        ("maxCTAs", _INT),
        ("nvlsCTAs", _INT),
        ("cgaClusterSize", _INT),
        ("algSelection", _TEXT),
        ("forceAlgSelection", _INT),
        ("CTAPolicy", _INT),
        ("userProfilerTag", ctypes.c_uint64),
        ("launchCompletionEvent", ctypes.c_void_p),
    )


def _blank(config: ctypes.Structure, version: int) -> None:
    for field in type(config)._fields_:
        if field[1] is _INT:
            setattr(config, field[0], UNDEFINED)
    for name, value in (("size", ctypes.sizeof(config)), ("magic", MAGIC), ("version", version)):
        setattr(config, name, value)


def communicator_config(settings: Settings, peers: int = 0) -> ctypes.Structure | None:
    """The configuration of a communicator; None where NCCL's own holds.

    Args:
        peers: most ranks that one sends to or receives from at once, ``maxP2pPeers``; 0: not said.
    """
    if not (settings.cta_policy or settings.min_ctas or settings.max_ctas or peers):
        return None
    config: Config217 | Config227 | Config230
    if peers:
        config, version = Config230(), 23000
    elif settings.cta_policy:
        config, version = Config227(), 22700
    else:
        config, version = Config217(), 21700
    _blank(config, version)
    if isinstance(config, Config230):
        config.maxP2pPeers = peers
    if settings.cta_policy and not isinstance(config, Config217):
        config.CTAPolicy = POLICIES.index(settings.cta_policy)
    config.minCTAs, config.maxCTAs = settings.min_ctas or UNDEFINED, settings.limit or UNDEFINED
    return config


def selection(algorithms: str) -> str:
    """The ``algSelection`` for algorithms as ``--nccl`` names them.

    ``,`` is OR there, ``+`` AND, and ``^`` is for the name behind it alone.

    >>> selection("tree+nvls"), selection("^tree+nvls")
    ('tree,nvls_', '^tree+^nvls_')
    """
    names = [_SELECTED.get(word, word) for word in algorithms.removeprefix("^").split("+")]
    return "+".join(f"^{name}" for name in names) if algorithms.startswith("^") else ",".join(names)


def collective_config(algorithms: str) -> CollectiveConfig:
    """The configuration of a call that may use these algorithms only."""
    config = CollectiveConfig()
    _blank(config, 23200)
    config.algSelection, config.forceAlgSelection = selection(algorithms).encode(), 1
    return config
