"""Access control: requests from this machine under its own name, or requests with the token."""

from __future__ import annotations

import base64
import hashlib
import hmac
import ipaddress
import re
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import urlencode

if TYPE_CHECKING:
    from dash import Dash
    from flask import Flask
    from werkzeug.wrappers import Response as BaseResponse

    from omb_py.grammar.json_values import JsonValue

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


_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)


def content_policy(app: Dash) -> str:
    """Content-Security-Policy of a complete Dash application: its own files, and its page's inline scripts by hash."""
    inline = [hashlib.sha256(text.encode()).digest() for text in _SCRIPT.findall(app.index_string)]
    hashes = [*(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in inline), *app.csp_hashes()]
    return (
        f"default-src 'none'; script-src 'self' {' '.join(hashes)}; style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )


def guard(
    server: Flask,
    token: str,
    policy: Callable[[], str] = lambda: "default-src 'self'",
    is_request: Callable[[JsonValue], bool] = lambda body: True,
) -> None:
    """Refuse on a Flask server what may not ask or asks in a wrong form, and say what its pages may load.

    With a token: a request needs it once as ``?token=…``, and from then on the cookie that this sets. Without: it must
    name this machine, so that a page of another site cannot reach us under a name of its own (DNS rebinding).
    """
    from dash.exceptions import DependencyException, InvalidResourceError
    from flask import Response, redirect, request

    def unknown(error: Exception) -> Response:
        return Response("no such file\n", 404)

    for kind in (DependencyException, InvalidResourceError):
        server.register_error_handler(kind, unknown)
    once = cache(policy)

    def form() -> Response | None:
        if request.method != "POST" or is_request(request.get_json(force=True, silent=True)):
            return None
        return Response("not what a page of this explorer asks\n", 400)

    @server.before_request
    def check() -> BaseResponse | None:
        if not token:
            name = request.host.rsplit(":", 1)[0] if not request.host.endswith("]") else request.host
            return form() if name in _LOCAL_NAMES else Response("this explorer answers to 127.0.0.1 only\n", 403)
        given = request.args.get(PARAMETER, "")
        if given and _is_same(given, token):
            rest = [(k, v) for k, v in request.args.items(multi=True) if k != PARAMETER]
            answer = redirect(request.path + (f"?{urlencode(rest)}" if rest else ""))
            answer.set_cookie(_cookie(request.host), token, httponly=True, samesite="Strict")
            return answer
        if _is_same(request.cookies.get(_cookie(request.host), ""), token):
            return form()
        return Response("the token that omb-py dashboard printed is missing: open the address it printed\n", 403)

    @server.after_request
    def headers(answer: Response) -> Response:
        answer.headers["X-Content-Type-Options"] = "nosniff"
        answer.headers["X-Frame-Options"] = "DENY"
        answer.headers["Referrer-Policy"] = "no-referrer"
        answer.headers["Content-Security-Policy"] = once()
        return answer


def _cookie(host: str) -> str:
    """The cookie's name, with the port of the address that the browser has: it sends cookies to all ports of a host."""
    port = host.rpartition(":")[2]
    return f"{COOKIE}_{port}" if port.isascii() and port.isdecimal() else COOKIE


def _is_same(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode(), token.encode())
