"""Both ends of a connection prove that they know the launch's secret, which itself never travels.

The listener speaks first.  Each proof covers two random numbers, one of each end, so a recorded one opens nothing::

    listener → caller    {"type": "challenge", "nonce": N}
    caller → listener    {"type": "hello", "nonce": M, "proof": HMAC-SHA256(secret, "caller N M"), …}
    listener → caller    {"type": "welcome", "proof": HMAC-SHA256(secret, "listener N M"), "host": …, "now": …}

The welcome also says what time it is there, so that the caller can compare the clocks of two machines.
"""

from __future__ import annotations

import json
import os
import socket
from _operator import _compare_digest  # of hmac, which loads OpenSSL
from typing import BinaryIO, Final, Literal

from omb_py.digests import hmac_sha256
from omb_py.engine.rank.start_times import now_ns
from omb_py.grammar.json_values import JsonObject, JsonValue

LINE_LIMIT: Final = 4096
"""Bytes of the longest line that either end reads before the other has proven itself."""
Role = Literal["caller", "listener"]


class Stranger(Exception):
    """The other end does not know the secret, or does not follow the protocol."""


class HungUp(Stranger):
    """The other end closed the connection: it found us to be strangers, or we were too slow."""


def new_secret() -> str:
    return os.urandom(16).hex()


def new_nonce() -> str:
    """A number that no other connection has: 128 random bits in hexadecimal."""
    return os.urandom(16).hex()


def proof(secret: str, role: Role, listener_nonce: str, caller_nonce: str) -> str:
    """The proof of one end, in hexadecimal. Raises ValueError for an empty secret, which everybody knows."""
    if not secret:
        raise ValueError("an empty secret proves nothing")
    text = f"{role} {listener_nonce} {caller_nonce}"
    return hmac_sha256(secret.encode(), text.encode(errors="replace"))


def agrees(given: object, expected: str) -> bool:
    """Whether a proof that came over the wire is the expected one, compared whole and in constant time."""
    return isinstance(given, str) and _compare_digest(given.encode(errors="replace"), expected.encode())


def is_caller(message: JsonObject, secret: str, listener_nonce: str) -> bool:
    """Whether a message is the hello of a caller that knows the secret."""
    nonce = message.get("nonce")
    if message.get("type") != "hello" or not isinstance(nonce, str):
        return False
    return agrees(message.get("proof"), proof(secret, "caller", listener_nonce, nonce))


def welcome(secret: str, listener_nonce: str, hello: JsonObject) -> dict[str, JsonValue]:
    """The listener's answer to the hello of a caller, with its clock (ns since its host booted)."""
    own = proof(secret, "listener", listener_nonce, str(hello["nonce"]))
    return {"type": "welcome", "proof": own, "now": now_ns()}


def call(connection: socket.socket, lines: BinaryIO, secret: str, fields: JsonObject) -> int:
    """Do the caller's part on a connection that blocks.

    Args:
        connection: to write to; its time limit holds for each step.
        lines: the same connection, to read from.
        secret: of the launch.
        fields: more for the listener, sent with the hello.

    Returns:
        how far the listener's clock is ahead of ours, in ns; 0 where that is less than what one exchange of messages
        can tell, half the time it took: on the same host.

    Raises:
        Stranger: the listener does not know the secret, or is something else.
        OSError: the connection broke, or the listener took too long.
    """
    challenge = _read(lines, "challenge")
    theirs, ours = str(challenge.get("nonce")), new_nonce()
    write(connection, {"type": "hello", "nonce": ours, "proof": proof(secret, "caller", theirs, ours), **fields})
    sent = now_ns()
    answer = _read(lines, "welcome")
    received = now_ns()
    if not agrees(answer.get("proof"), proof(secret, "listener", theirs, ours)):
        raise Stranger("it does not know this launch's secret")
    now = answer.get("now")
    if not isinstance(now, int):
        return 0
    ahead = now - (sent + received) // 2
    return ahead if abs(ahead) > (received - sent) // 2 else 0


def answer(connection: socket.socket, lines: BinaryIO, secret: str) -> dict[str, JsonValue]:
    """Do the listener's part on a connection that blocks. Returns the caller's hello.

    Raises:
        Stranger: the caller does not know the secret, or is something else.
        OSError: the connection broke, or the caller took too long.
    """
    nonce = new_nonce()
    write(connection, {"type": "challenge", "nonce": nonce})
    hello = _read(lines, "hello")
    if not is_caller(hello, secret, nonce):
        raise Stranger("it does not know this launch's secret")
    write(connection, welcome(secret, nonce, hello))
    return hello


def write(connection: socket.socket, message: JsonObject) -> None:
    connection.sendall(json.dumps(message, separators=(",", ":")).encode() + b"\n")


def _read(lines: BinaryIO, kind: str) -> dict[str, JsonValue]:
    line = lines.readline(LINE_LIMIT)
    if not line.endswith(b"\n"):
        if not line:
            raise HungUp("it hung up: it does not know this launch's secret")
        raise Stranger(f"it sent no {kind}")
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        raise Stranger(f"it sent no {kind}") from None
    if not isinstance(message, dict) or message.get("type") != kind:
        raise Stranger(f"it sent no {kind}")
    return message
