"""The name of this node: as the user wrote it in ``--hosts``, or else its host name."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Sequence


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


def host_and_slots(entry: str) -> tuple[str, int | None]:
    """The host of an entry of ``--hosts``, and its slots; None where it has none, as an address of IPv6.

    >>> host_and_slots("n1:4"), host_and_slots("n1"), host_and_slots("fd00::1")
    (('n1', 4), ('n1', None), ('fd00::1', None))
    """
    host, _, slots = entry.partition(":")
    return (host, int(slots)) if re.fullmatch("[0-9]+", slots) else (entry, None)


def node_name(names: Sequence[str], is_own: Callable[[str], bool] = is_own_address) -> str:
    """That of `names` which stands for this node; its host name where none does, or where several could.

    The host name decides before addresses do, since asking for those can take seconds. But several nodes may have the
    same host name, as containers and cloned images have: an address tells them apart.

    Args:
        names: entries of ``--hosts``, each with or without ``:SLOTS``.
        is_own: whether a name stands for an address of this machine; may raise OSError.
    """
    own = socket.gethostname()
    hosts = list(dict.fromkeys(host_and_slots(name)[0] for name in names))
    for form in (str.lower, _short):
        same = [host for host in hosts if form(host) == form(own)]
        if len(same) == 1:
            return same[0]
    try:
        same = [host for host in hosts if is_own(host)]
    except OSError:
        return own
    return same[0] if len(same) == 1 else own


def _short(name: str) -> str:
    """A host name without its domain; an address as it is."""
    label = name.lower().partition(".")[0]
    return name if label.isdigit() else label
