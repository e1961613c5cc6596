"""The start of a node's agent by the first of its ranks. It imports little: every rank loads it before it reports."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from collections.abc import Mapping

from omb_py.engine.rank.link import AGENTS_VARIABLE, CONTROL_VARIABLE, TOKEN_VARIABLE
from omb_py.engine.rank.reporting import agent_socket, split_address

_BACKLOG = 4096
_PROGRAM = "omb_py.orchestrate.supervision.node_agent"


def agent_of_this_node(address: str, token: str, environ: Mapping[str, str] | None = None) -> str:
    """The socket of this node's agent, which is started where there is none yet; empty where none is wanted."""
    environ = os.environ if environ is None else environ
    if not wanted(address, environ):
        return ""
    name = agent_socket(token)
    with socket.socket(socket.AF_UNIX) as server:
        try:
            server.bind(name)  # succeeds in one process
        except OSError:
            return name
        server.listen(_BACKLOG)  # ranks may come before the agent runs
        with contextlib.suppress(OSError):  # they are refused then, and report to the supervisor
            _start(server, {**environ, CONTROL_VARIABLE: address, TOKEN_VARIABLE: token})
    return name


def wanted(address: str, environ: Mapping[str, str]) -> bool:
    """Whether ranks speak over an agent: where the supervisor serves several nodes, unless told otherwise.

    An address of one place is loopback: all ranks are on the supervisor's node, and it is their agent.
    """
    choice = environ.get(AGENTS_VARIABLE, "")
    if choice in ("0", "1"):
        return choice == "1"
    if len(split_address(address)) == 1:
        return False
    from omb_py.engine.rank.launcher_variables import local_size  # it knows all launchers

    return local_size(environ) != 1


def _start(server: socket.socket, environ: Mapping[str, str]) -> None:
    """Start the agent with a socket that listens, and with nothing else of the rank's.

    Launchers wait until a rank's streams and the line to its process manager are closed. In a session of its own
    the agent outlives the launcher's kill and says which ranks died.
    """
    descriptors = [int(name) for name in os.listdir("/proc/self/fd")]
    actions = [(os.POSIX_SPAWN_CLOSE, each) for each in descriptors if each > 2 and _is_inherited(each)]
    nothing = [(os.POSIX_SPAWN_OPEN, each, os.devnull, os.O_RDWR, 0) for each in (0, 1, 2)]
    server.set_inheritable(True)
    words = [sys.executable, "-m", _PROGRAM, str(server.fileno())]
    os.posix_spawn(sys.executable, words, environ, file_actions=[*actions, *nothing], setsid=True)


def _is_inherited(descriptor: int) -> bool:
    try:
        return os.get_inheritable(descriptor)
    except OSError:  # the one by which the list was read
        return False
