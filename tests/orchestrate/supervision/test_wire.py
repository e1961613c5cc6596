"""The addresses at which ranks on other hosts may reach the supervisor."""

from __future__ import annotations

import socket

import pytest

from omb_py.orchestrate.supervision import wire


def test_hosts_are_looked_up_without_slots_and_bad_names_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def look_up(host: str, *rest: object, **more: object) -> list[tuple[object, ...]]:
        asked.append(host)
        host.encode("idna")  # as the real one: UnicodeError for what can be no name
        raise OSError("unknown name")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        text = wire.addresses(server, local=False, hosts=["n1:4", "n2", "fd00::1", "a..b", "x" * 70])
    assert asked == ["n1", "n2", "fd00::1", "a..b", "x" * 70]
    assert f"127.0.0.1:{port}" in text.split(",")
