"""Access control: requests from this machine under its own name, or requests with the token."""

from __future__ import annotations

import hmac
import ipaddress
import secrets
from typing import Any
from urllib.parse import urlencode

COOKIE = "omb_py_token"
PARAMETER = "token"
_LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")


def is_loopback(address: str) -> bool:
    """True for an address that only this machine reaches.

    >>> is_loopback("127.0.0.1"), is_loopback("0.0.0.0"), is_loopback("localhost")
    (True, False, True)
    """
    if address == "localhost":
        return True
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def new_token() -> str:
    """32 random bytes as text for a URL."""
    return secrets.token_urlsafe(32)


def guard(server: Any, token: str) -> None:
    """Refuse on a Flask server what may not ask.

    With a token: a request needs it once as ``?token=…``, and from then on the cookie that this sets. Without: it must
    name this machine, so that a page of another site cannot reach us under a name of its own (DNS rebinding).
    """
    from flask import Response, redirect, request

    @server.before_request  # type: ignore[untyped-decorator]
    def check() -> Any:
        if not token:
            name = request.host.rsplit(":", 1)[0] if not request.host.endswith("]") else request.host
            return None if name in _LOCAL_NAMES else Response("this explorer answers to 127.0.0.1 only\n", 403)
        given = request.args.get(PARAMETER, "")
        if given and _same(given, token):
            rest = [(k, v) for k, v in request.args.items(multi=True) if k != PARAMETER]
            answer = redirect(request.path + (f"?{urlencode(rest)}" if rest else ""))
            answer.set_cookie(COOKIE, token, httponly=True, samesite="Strict")
            return answer
        if _same(request.cookies.get(COOKIE, ""), token):
            return None
        return Response("the token that omb-py dashboard printed is missing: open the address it printed\n", 403)

    @server.after_request  # type: ignore[untyped-decorator]
    def headers(answer: Any) -> Any:
        answer.headers["X-Content-Type-Options"] = "nosniff"
        answer.headers["X-Frame-Options"] = "DENY"
        answer.headers["Referrer-Policy"] = "no-referrer"
        return answer


def _same(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode(), token.encode())
