"""The name of this node: as the user wrote it in ``--hosts``, as the batch system has it, or else its host name."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from omb_py.engine.rank.link import LaunchSpec


def is_own_address(name: str) -> bool:
    """Whether `name` stands for an address of this machine which is not its loopback address.

    Only an own address can be bound. Raises OSError where nobody knows an address of that name.
    """
    for family, kind, protocol, _, address in socket.getaddrinfo(name, 0, type=socket.SOCK_DGRAM):
        if str(address[0]).startswith("127.") or address[0] == "::1":
            continue
        with socket.socket(family, kind, protocol) as probe:
            try:
                probe.bind(address)
            except OSError:
                continue
            return True
    return False


def node_name(spec: LaunchSpec, is_own: Callable[[str], bool] = is_own_address) -> str:
    """Return the entry of ``hosts`` that refers to this node; its host name where none does, or where several could.

    Without ``hosts`` it is the batch system's name for it, by which it can be drained.

    The host name decides before addresses do, since asking for those can take seconds. But several nodes may have the
    same host name, as containers and cloned images have: an address tells them apart.

    Args:
        spec: its ``hosts`` are the entries of ``--hosts``, each with or without ``:SLOTS``; its ``batch_signs`` are
            variables of which a batch system sets one in every job, so that ranks outside a job load no system.
        is_own: whether a name stands for an address of this machine; may raise OSError.
    """
    names: Sequence[str] = spec.get("hosts") or ()
    own = socket.gethostname()
    if not names and not any(os.environ.get(sign) for sign in spec.get("batch_signs", ())):
        return own
    # these know all launchers, and cost a rank its time
    from omb_py.engine.rank.launcher_variables import same_host, scheduled_name
    from omb_py.launchers.launcher import host_and_slots

    if not names:
        return scheduled_name(os.environ, own)
    hosts = list(dict.fromkeys(host_and_slots(name)[0] for name in names))
    if named := same_host(hosts, own):
        return named
    try:
        same = [host for host in hosts if is_own(host)]
    except OSError:
        return own
    return same[0] if len(same) == 1 else own
