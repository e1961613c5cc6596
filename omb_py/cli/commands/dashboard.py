"""``omb-py dashboard``: the explorer, on 127.0.0.1."""

from __future__ import annotations

import errno
import getpass
import logging
import socket
from pathlib import Path
from typing import Any

import click

from omb_py.cli.help import Page, debug_option, tool_option
from omb_py.cli.option_params import ParsedType, store_is_given, table_option, whole
from omb_py.dashboards.explorer.app import make
from omb_py.dashboards.explorer.data import Data
from omb_py.dashboards.explorer.guard import PARAMETER, is_loopback, new_token
from omb_py.distribution import pip_install
from omb_py.errors import OK, EnvironmentProblem, UsageError
from omb_py.options.request import DEFAULT_STORE

DEFAULT_PORT = 8050


def command() -> click.Command:
    heading = "Where it listens"
    return Page(
        "dashboard",
        params=[
            click.Argument(["place"], required=False, metavar="[STORE]"),
            tool_option(
                heading,
                "--bind ADDRESS",
                "Where it listens. The address that is printed holds a token, without which it shows nothing. "
                "(default: 127.0.0.1)",
                ParsedType("address", str),
                default="127.0.0.1",
            ),
            tool_option(heading, "--port N", "Port.", whole("port", 1), default=DEFAULT_PORT),
            table_option("store", "Store"),
            debug_option(),
        ],
        callback=run_dashboard,
        help="The explorer: filter and compare what a store holds, in a browser. It listens on 127.0.0.1 and "
        "prints the ssh line that "
        "brings it to your own machine. The address bar always holds a link to what is shown. Ctrl-C ends it.",
        examples=(
            "omb-py dashboard",
            "omb-py dashboard results --port 8060",
        ),
    )


def run_dashboard(place: str | None, bind: str, port: int, store: Path | None) -> int:
    if port > 65535:
        raise UsageError(f"port must be at most 65535, not {port}")
    if place and store_is_given():
        raise UsageError(f"one store, not 2: {place}, {store}")
    folder = Path(place) if place else store or DEFAULT_STORE
    token = new_token()  # on loopback too: every user of a login node reaches that
    data = Data(folder)
    app = make(data, token)
    _check_free(bind, port)
    address = f"http://{bind}:{port}/?{PARAMETER}={token}"
    click.echo(f"omb-py: {len(data.frame)} cells of {folder}: {address}  (Ctrl-C ends it)", err=True)
    if is_loopback(bind):
        tunnel = f"ssh -L {port}:127.0.0.1:{port} {getpass.getuser()}@{socket.gethostname()}"
        click.echo(f"omb-py: from your own machine: {tunnel}, then the same address there", err=True)
    if not len(data.frame):
        click.echo(
            f"omb-py: the store is empty; new launches are shown as they land: omb-py allreduce --store {folder}",
            err=True,
        )
    _serve(app.server, bind, port)
    return OK


def _serve(server: Any, bind: str, port: int) -> None:
    """Serve by waitress, or by Flask's own server where that is not installed."""
    try:
        from waitress import serve  # comes with the optional dashboard packages
    except ImportError:
        click.echo(
            f"omb-py: waitress is not installed, so Flask's development server answers: {pip_install('dashboard')}",
            err=True,
        )
        _quiet()
        server.run(host=bind, port=port, threaded=True, debug=False)
        return
    serve(server, host=bind, port=port, threads=8, ident=None, _quiet=True)


def _check_free(bind: str, port: int) -> None:
    """Raises EnvironmentProblem where the port is taken or the address is not ours."""
    family = socket.AF_INET6 if ":" in bind else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((bind, port))
        except (OSError, UnicodeError) as error:
            taken = isinstance(error, OSError) and error.errno in (errno.EADDRINUSE, errno.EACCES)
            advice = "choose another with --port" if taken else "--bind takes an address of this machine"
            raise EnvironmentProblem(f"cannot listen on {bind} port {port}: {error}; {advice}") from error


def _quiet() -> None:
    """Keep the web server from printing a line for each request on stderr."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    import flask.cli  # comes with the optional dashboard packages

    flask.cli.show_server_banner = lambda *words: None
