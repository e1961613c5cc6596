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


@pytest.mark.parametrize(
    ("interface", "own_name", "reached"),
    [("", "n0", "127.0.0.1"), ("", "n1", "n0"), ("203.0.113.7", "n1", "203.0.113.7")],
    ids=["on rank 0's machine, whose name need not resolve", "on another machine", "an interface of its own"],
)
def test_another_machine_gets_no_loopback_address(
    interface: str, own_name: str, reached: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Store:
        port = 5

        @staticmethod
        def served(host: str, secret: str) -> type[Store]:
            assert host == interface
            return Store

        @staticmethod
        def reached(host: str, port: int, secret: str) -> str:
            return host

    places: list[rendezvous.Place] = []

    def meet(place: rendezvous.Place | None) -> rendezvous.Place:
        places.extend([place] if place else [])
        return places[0]

    monkeypatch.setattr("omb_py.backends.gloo.secret_store.SecretStore", Store)
    monkeypatch.setattr(rendezvous, "_interface", lambda host: interface)
    monkeypatch.setattr(socket, "gethostname", lambda: "n0")
    rendezvous._open_over_network(0, "127.0.0.1", meet)
    monkeypatch.setattr(socket, "gethostname", lambda: own_name)
    assert rendezvous._open_over_network(1, "127.0.0.1", meet) == reached
