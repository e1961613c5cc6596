"""The interface on which rank 0 listens for the others."""

from __future__ import annotations

import socket

import pytest

from omb_py.backends.gloo import rendezvous


@pytest.mark.parametrize(
    ("known", "address"),
    [
        (["203.0.113.7"], "203.0.113.7"),
        (["203.0.113.7", "203.0.113.8"], "203.0.113.7"),
        (["127.0.1.1", "203.0.113.8"], ""),
        ([], ""),
    ],
)
def test_it_is_the_first_address_of_the_hosts_name_unless_that_is_loopback(
    known: list[str], address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def resolved(host: str, port: None, type: int) -> list[tuple[object, ...]]:
        if not known:
            raise OSError("unknown name")
        return [(socket.AF_INET, type, 0, "", (word, 0)) for word in known]

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    assert rendezvous._interface("n0") == address
