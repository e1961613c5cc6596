"""``omb-py dashboard``: the explorer, on 127.0.0.1."""

from __future__ import annotations

import errno
import getpass
import secrets
import socket
from functools import partial
from pathlib import Path

import click

from omb_py.cli.help import Page, debug_option, tool_option
from omb_py.cli.option_params import store_is_given, table_option
from omb_py.errors import OK, EnvironmentProblem, UsageError
from omb_py.options.readers import whole
from omb_py.options.request import DEFAULT_STORE
from omb_py.results.repro_command import storing

_PORTS = range(8050, 8100)
"""Where it listens if no port is given: the first that is free."""
_BACKLOG = 1024


def command() -> click.Command:
    option = partial(tool_option, "Where it listens")
    return Page(
        "dashboard",
        params=[
            click.Argument(["place"], required=False, metavar="[STORE]"),
            option(
                "--bind ADDRESS",
                "Where it listens. The address that is printed holds a token, without which it shows nothing. "
                "(default: 127.0.0.1)",
                str,
                default="127.0.0.1",
            ),
            option("--port N", "Port; 0: any free one. (default: 8050, or the next free one)", whole("port", 0)),
            table_option("store", "Store"),
            debug_option(),
        ],
        callback=run_dashboard,
        help="The explorer: filter and compare what a store holds, in a browser. It listens on 127.0.0.1 and "
        "prints the ssh line that "
        "brings it to your own machine. The address bar always holds a link to what is shown. Ctrl-C ends it.",
        examples=("omb-py dashboard", "omb-py dashboard results --port 8060"),
    )


def run_dashboard(place: str | None, bind: str, port: int | None, store: Path | None) -> int:
    from omb_py.dashboards.explorer.app import make  # loads pandas, unlike --help
    from omb_py.dashboards.explorer.data import Data
    from omb_py.dashboards.explorer.guard import PARAMETER, is_loopback

    if port is not None and port > 65535:
        raise UsageError(f"port must be at most 65535, not {port}")
    if place and store_is_given():
        raise UsageError(f"one store, not 2: {place}, {store}")
    folder = Path(place) if place else store or DEFAULT_STORE
    token = secrets.token_urlsafe()  # on loopback too: every user of a login node reaches that
    data = Data(folder)
    app = make(data, token)
    from omb_py.dashboards.explorer.server import make_server  # waitress is optional; make() says where it is missing

    listening = _listen(bind, *(_PORTS if port is None else [port]))
    port = listening.getsockname()[1]
    address = f"http://{bind}:{port}/?{PARAMETER}={token}"
    click.echo(f"omb-py: {len(data.frame)} cells of {folder}: {address}  (Ctrl-C ends it)", err=True)
    if is_loopback(bind):
        tunnel = f"ssh -L {port}:127.0.0.1:{port} {getpass.getuser()}@{socket.gethostname()}"
        click.echo(f"omb-py: from your own machine: {tunnel}, then the same address there", err=True)
    if not len(data.frame):
        click.echo(
            f"omb-py: the store is empty; new launches are shown as they land: {storing('omb-py allreduce', folder)}",
            err=True,
        )
    with listening:
        make_server(app.server, listening).run()
    return OK


def _listen(bind: str, port: int, *others: int) -> socket.socket:
    """Raises EnvironmentProblem where the port and all others are taken, or the address is not ours."""
    try:
        return socket.create_server(
            (bind, port), family=socket.AF_INET6 if ":" in bind else socket.AF_INET, backlog=_BACKLOG
        )
    except (OSError, UnicodeError) as error:
        taken = isinstance(error, OSError) and error.errno in (errno.EADDRINUSE, errno.EACCES)
        if taken and others:
            return _listen(bind, *others)
        advice = "choose another with --port" if taken else "--bind takes an address of this machine"
        raise EnvironmentProblem(f"cannot listen on {bind} port {port}: {error}; {advice}") from error
