"""The parent of a launch: it starts the ranks, receives their messages, reports failures, and leaves no process behind.

One thread, one selector.  Ranks report over TCP (``engine.rank.link``), by themselves or through the agent of their
node (``branches``); a rank whose connection closes exits, so closing them ends ranks on every node, also those that are
blocked in a communication call.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from omb_py.engine.rank.handshake import new_secret
from omb_py.engine.rank.link import CONTROL_VARIABLE, RETURN_S, TOKEN_VARIABLE, LaunchSpec, Message
from omb_py.engine.rank.start_times import start_ticks
from omb_py.errors import (
    ENVIRONMENT,
    INTERRUPTED,
    EnvironmentProblem,
    Interrupted,
    LaunchFailed,
    NotBegun,
    OmbError,
    UsageError,
)
from omb_py.orchestrate.supervision import failure_messages, leftovers, processes, wire
from omb_py.orchestrate.supervision.branches import EVERYBODY, BranchedRank, Branches
from omb_py.orchestrate.supervision.processes import Child, Signals
from omb_py.orchestrate.supervision.rank_state import RankState, names, next_cell, position
from omb_py.orchestrate.supervision.wire import MOST, Connection, Garbage, Lobby, Output

_TICK_S = 0.25
"""Seconds after which the loop checks for failures when nothing happens."""
_LOOK_S = 0.2
"""Seconds between looks for silent ranks."""
_GRACE_S = 0.4
"""Seconds to wait for the last output of dying processes before a failure is reported."""
_REPORT_S = 1.6
"""Further seconds to wait for the launcher's report of how a rank ended, which takes longer on a busy machine."""
_OTHER_FILES = 64
"""Files that are open beside the ranks' connections."""
_FINISH_S = 0.5
"""Seconds in which agents pass on what was sent last."""
_TOGETHER_S = 0.002
"""Connections that close within so many seconds may have closed in any order."""


def _ignore(message: Message) -> None:
    """Ignore a message."""


@dataclass(frozen=True, slots=True)
class Handlers:
    """Callbacks for the messages of ranks. They run in the supervisor's thread."""

    started: Callable[[], None] = lambda: None
    """Called once the launcher runs, before any rank is answered."""
    launch: Callable[[Message], None] = _ignore
    cell: Callable[[Message], None] = _ignore
    note: Callable[[Message], None] = _ignore
    modules: Callable[[Message], None] = _ignore
    """For the names of the modules that rank 0 has loaded, where they are asked for."""
    beat: Callable[[Message], None] = _ignore
    """For heartbeats, with ``rank`` added; for a progress display."""
    failed: Callable[[OmbError], None] = lambda error: None
    """Called before an error ends the ranks: when they have ended, a foreign launcher prints no more."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A launch whose ranks all finished."""

    output: str
    """Output of launcher and ranks, without the middle where it is very long."""
    status: int | None
    """The launcher's exit status; None without a launcher, or where it had to be killed."""
    hosts: tuple[str, ...]
    """Host of each rank."""
    notes: tuple[str, ...]
    """Sentences for the user about oddities, although all cells are done."""


@dataclass(slots=True)
class Trouble:
    """A failure that was noticed. It is reported a moment later, when the last output has arrived."""

    kind: Literal["lost", "launcher", "worlds"]
    until: float
    turn: int
    """The turn of the loop that noticed it."""
    since: float = field(default_factory=time.monotonic)
    first: list[RankState] = field(default_factory=list)
    """Ranks whose connection closed first."""
    together: int = 0
    """How many of them that turn found: where the supervisor starves, it finds at once what happened one by one."""


def beat_interval(ranks: int, timeout: float) -> float:
    """Seconds between heartbeats of a rank: often enough for the timeout, and at most some 500 a second at the parent.

    >>> beat_interval(4, 60.0), beat_interval(1000, 60.0)
    (1.0, 2.0)
    """
    return max(min(1.0, timeout / 5), ranks / 500)


class Supervisor:
    """Supervises one launch. Give :meth:`environment` to whatever starts the ranks, then call :meth:`run` once.

    Args:
        spec: answer to the hello of each rank; ``beat_s``, ``follow_launcher`` and ``one_host`` are added.
        timeout: seconds without progress, or without all ranks present, after which the launch has failed.
        command: the launcher's command line; None when something else starts the ranks.
        environ: environment of the command, without the two control variables.
        local: all ranks run on this machine; else the socket listens on every interface.
        hosts: hosts of the ranks, to find this machine's address on the route to them.

    Raises:
        EnvironmentProblem: the limit of open files is too low for a connection to each rank, or to each node.
    """

    def __init__(
        self,
        spec: LaunchSpec,
        ranks: int,
        timeout: float,
        *,
        command: Sequence[str] | None = None,
        environ: Mapping[str, str] | None = None,
        handlers: Handlers | None = None,
        local: bool = True,
        hosts: Sequence[str] = (),
        launcher: str = "",
    ) -> None:
        # on several nodes the agents' connections suffice; without an agent a rank has one of its own
        nodes = ranks if local else min(ranks, len(hosts))
        processes.allow_files(ranks + MOST + _OTHER_FILES, nodes + MOST + _OTHER_FILES)
        self.ranks, self.timeout = ranks, timeout
        self.token = new_secret()
        self._command = None if command is None else list(command)
        self._environ = dict(os.environ if environ is None else environ)
        self._handlers = handlers or Handlers()
        self._launcher = launcher or (os.path.basename(self._command[0]) if self._command else "the launcher")
        self._beat_s = float(spec.get("beat_s") or beat_interval(ranks, timeout))
        fields = {"beat_s": self._beat_s, "follow_launcher": self._command is not None, "one_host": local}
        self._spec = wire.encode({**spec, "type": "spec", **fields})
        self._states: dict[Connection | BranchedRank, RankState] = {}
        self._branches = Branches(RETURN_S)
        self._lobby = Lobby(self.token)
        self._done = self._lost = 0
        """Numbers of ranks: counted, since asking each at every message would take N² steps."""
        self._child: Child | None = None
        self._output = Output()
        self._turns = 0
        self._clock = 0.0
        self._moved = 0.0
        self._look_at = 0.0
        """When to look next for a rank that has fallen silent: that takes a step for each rank."""
        self._trouble: Trouble | None = None
        self._finish_by: float | None = None
        self._notes: list[str] = []
        self._record = leftovers.LeftoverRecord()
        self._killed = False
        self._cells: Sequence[Message] = spec.get("cells") or ()
        self._next: Message | None = None
        """Where every rank is at least, once a cell is done: at the start of the next one."""
        self._meeting = b""
        """The message of the rank that says where the others meet it (:meth:`omb_py.engine.rank.link.Link.meet`)."""
        self._exit = b""
        """The message that ends the ranks, once all are done."""
        self._met_everywhere: OmbError | None = None
        """Why no rank could measure; raised when all of them have ended the library."""
        self._server = wire.listen(local)
        self.address = wire.addresses(self._server, local, hosts)
        self._selector = selectors.DefaultSelector()
        self._signals = Signals()

    def environment(self) -> dict[str, str]:
        """The variables by which a rank finds its supervisor."""
        return {CONTROL_VARIABLE: self.address, TOKEN_VARIABLE: self.token}

    @property
    def output(self) -> str:
        """Output of launcher and ranks so far."""
        return self._output.text()

    def close(self) -> None:
        self._server.close()
        self._selector.close()
        self._signals.close()

    def run(self) -> Outcome:
        """Supervise until all ranks are done. On return, and on every error, no process of the launch is left.

        Raises:
            LaunchFailed: a rank or the launcher died, hung, or never joined. The text says which, where, and what to
                do; the notes (PEP 678) hold the last lines of output.
            NotBegun: no rank began, and another attempt may succeed.
            UsageError, EnvironmentProblem: a rank refused; the text is the rank's.
            Interrupted: SIGINT, SIGTERM or SIGHUP.
        """
        try:
            with self._signals.caught():
                return self._run()
        except KeyboardInterrupt:
            raise Interrupted("interrupted") from None

    def _run(self) -> Outcome:
        try:
            leftovers.clean()
            self._selector.register(self._server, selectors.EVENT_READ, self._accept)
            self._selector.register(self._signals, selectors.EVENT_READ, self._signals.drain)
            if self._command is not None:
                environ = {**self._environ, **self.environment()}
                self._child = Child(self._command, environ, self._output, self._selector, self._launcher_ended)
                self._record.launcher(self._child.pid)
            self._handlers.started()
            while not self._is_finished():
                self._turn()
            outcome = self._outcome()
            self._signals.hold()
            # a launcher that was killed after the last cell has removed nothing either
            self._stop(failed=self._killed or bool(outcome.status))
            return outcome
        except BaseException as problem:
            self._signals.hold()
            self._give_up(problem)
            raise

    # one turn of the loop

    def _turn(self) -> None:
        self._turns += 1
        before = time.monotonic()
        known = self._trouble
        for key, _ in self._selector.select(_TICK_S):
            key.data()
        if self._trouble is not known:  # a callback takes time: who else has gone meanwhile?
            for key, _ in self._selector.select(0):
                key.data()
        # A parent that was itself stopped, or busy in a callback, must not blame its ranks for that time.
        self._clock += min(time.monotonic() - before, 2 * _TICK_S)
        if self._signals.pending:
            raise KeyboardInterrupt
        self._check()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                peer, _ = self._server.accept()
                connection = Connection(peer)
                self._lobby.enter(connection, self._clock)
                self._selector.register(connection, selectors.EVENT_READ, lambda c=connection: self._ready(c))

    def _ready(self, connection: Connection) -> None:
        if connection.waiting:
            self._send(connection)
        try:
            for line in connection.receive():
                self._message(*self._read(connection, line))
        except Garbage:
            connection.closed = True
        if connection.closed:
            self._closed(connection)

    def _read(self, connection: Connection, line: bytes) -> tuple[Connection | BranchedRank, Message]:
        if connection in self._branches:
            return self._branches.read(connection, line)
        return connection, wire.decode(line)

    def _send(self, peer: Connection | BranchedRank, line: bytes = b"") -> None:
        carrier = peer.carrier
        if carrier.closed:
            return
        peer.send(line)
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if carrier.waiting else 0)
        with contextlib.suppress(KeyError):
            self._selector.modify(carrier, events, self._selector.get_key(carrier).data)

    def _send_all(self, line: bytes, but: Connection | BranchedRank | None = None) -> None:
        """Send a line to every rank, but to the one that has it; those of an agent get it from there."""
        for carrier in self._branches:
            self._send(carrier, EVERYBODY + b" " + line)
        for peer in self._states:
            if peer is not but and not isinstance(peer, BranchedRank):
                self._send(peer, line)

    def _drop(self, connection: Connection) -> None:
        self._lobby.leave(connection)
        self._selector.unregister(connection)
        connection.close()

    def _closed(self, connection: Connection) -> None:
        self._drop(connection)
        if connection in self._branches:
            alone = self._branches.lose(connection, self._clock)
            if any(rank.moved or self._finish_by is None for rank in alone):
                self._notes.append(
                    f"the agent on {alone[0].host} ended; its ranks went on with a connection of their own"
                )
        elif connection in self._states:
            self._lose(connection)

    def _lose(self, peer: Connection | BranchedRank) -> None:
        state = self._states[peer]
        state.lost = True
        self._lost += 1
        if self._finish_by is not None:
            self._finish_by = self._clock + self.timeout  # ranks that end one after another make progress
            return
        if self._trouble is None:
            self._begin("lost")
        trouble = self._trouble
        if trouble is None:
            return
        # Later losses are mostly the launcher cleaning up after the first one.
        if trouble.turn == self._turns:
            trouble.together += 1
        elif time.monotonic() - trouble.since >= _TOGETHER_S:
            return
        trouble.first.append(state)

    # messages

    def _message(self, peer: Connection | BranchedRank, message: Message) -> None:
        kind = message["type"]
        if not isinstance(peer, BranchedRank) and peer in self._lobby:
            self._welcome(peer, message)
            return
        if isinstance(peer, BranchedRank) and kind == "hello":
            self._enter(peer, message)
            return
        state = self._states.get(peer)
        if state is None:
            return  # it has left its agent, which still sends what the rank has sent again
        if isinstance(peer, BranchedRank) and kind == "closed":
            self._lose(peer)
            return
        state.seen = self._clock
        if kind == "beat":
            self._beat(state, message)
            return
        self._moved = self._clock
        if kind == "joined":
            state.rank, state.size = int(message["rank"]), int(message["size"])
            self._record.add(leftovers.segments(state.pid) if self._is_here(state) else set())
            if state.size != self.ranks and self._trouble is None:
                self._begin("worlds")
        elif kind == "error":
            text = str(message.get("text") or "a rank failed without saying why")
            error = UsageError(text) if message.get("code") == UsageError.exit_code else EnvironmentProblem(text)
            if not message.get("everywhere"):
                raise error
            self._met_everywhere = error
        elif kind == "interrupted":
            raise KeyboardInterrupt
        elif kind == "meet":
            self._meeting = wire.encode({"type": "meet", "place": message["place"]})
            self._send_all(self._meeting, but=peer)
        elif kind == "settle":
            self._send(peer, wire.encode({"type": "settled", "number": message["number"]}))
        elif kind == "done":
            self._done += not state.done
            state.done = True
            if self._done == self.ranks and not self._are_worlds_apart:
                self._send_exit()
        else:
            self._hand_on(kind, message)

    def _hand_on(self, kind: str, message: Message) -> None:
        if self._are_worlds_apart:
            return  # cells of a world of another size are not what the user asked for
        if kind == "cell":
            self._next = next_cell(self._cells, message) or self._next
        ours = self._handlers
        handlers = {"launch": ours.launch, "cell": ours.cell, "note": ours.note, "modules": ours.modules}
        handlers.get(kind, _ignore)(message)

    def _welcome(self, connection: Connection, message: Message) -> None:
        self._lobby.admit(connection, message)
        if message.get("agent"):
            self._branches.add(connection)
            lines = (self._spec + self._meeting).splitlines(keepends=True)
            self._send(connection, b"".join(EVERYBODY + b" " + line for line in lines))
        elif "heard" in message:
            self._come_back(connection, message)
        else:
            self._enter(connection, message)
            self._send(connection, self._spec + self._meeting)

    def _come_back(self, connection: Connection, message: Message) -> None:
        """Go on with a rank that has lost its agent: say what has come of its messages, and send what it has missed."""
        peer = self._branches.take_back(message)
        if peer is None:
            self._enter(connection, message)
        else:
            self._states[connection] = self._states.pop(peer)
        missed = {"spec": self._spec, "meet": self._meeting, "exit": self._exit}
        lines = (line for kind, line in missed.items() if kind not in message["heard"])
        confirmed = wire.encode({"type": "confirmed", "messages": peer.messages if peer else 0})
        self._send(connection, confirmed + b"".join(lines))

    def _enter(self, peer: Connection | BranchedRank, message: Message) -> None:
        self._states[peer] = RankState(
            host=str(message.get("host", "?")),
            pid=int(message.get("pid") or 0),
            ticks=message.get("start"),
            env_rank=message.get("env_rank"),
            seen=self._clock,
        )
        self._moved = self._clock
        if len(self._states) > self.ranks:
            raise LaunchFailed(failure_messages.describe_too_many(self.ranks, self._launcher))

    def _beat(self, state: RankState, message: Message) -> None:
        before = position(state)
        state.beat = message
        if position(state) != before:
            self._moved = self._clock
        self._handlers.beat({**message, "rank": state.number})

    def _send_exit(self) -> None:
        if self._met_everywhere is not None:
            raise self._met_everywhere
        self._finish_by = self._clock + self.timeout
        self._exit = wire.encode({"type": "exit", "code": 0})
        self._send_all(self._exit)

    # failures

    @property
    def _status(self) -> int | None:
        """The launcher's exit status; None while it runs, and without a launcher."""
        return None if self._child is None else self._child.status

    @property
    def _are_worlds_apart(self) -> bool:
        """Whether ranks see a world of another size: the launch fails, even if all of them end well before it does."""
        return self._trouble is not None and self._trouble.kind == "worlds"

    def _begin(self, kind: Literal["lost", "launcher", "worlds"]) -> None:
        self._trouble = Trouble(kind, self._clock + _GRACE_S, self._turns)

    def _launcher_ended(self) -> None:
        if self._finish_by is None and self._trouble is None:
            self._begin("launcher")

    def _check(self) -> None:
        for connection in self._lobby.overdue(self._clock, self.ranks - len(self._states) + MOST):
            self._drop(connection)
        for rank in self._branches.overdue(self._clock):
            self._lose(rank)
        if self._status is not None:
            self._launcher_ended()
        if self._trouble is not None:
            if (self._clock >= self._trouble.until and not self._report_comes(self._trouble)) or self._are_all_gone():
                self._fail(self._trouble)
        elif self._finish_by is None:
            self._check_time()

    def _check_time(self) -> None:
        stopped = self._clock - self._moved >= self.timeout
        if len(self._states) < self.ranks:
            if stopped:
                lines = self._output.last_lines()
                states = list(self._states.values())
                raise LaunchFailed(failure_messages.absent(states, self.ranks, self.timeout, self.address, lines))
            return
        if not stopped and self._clock < self._look_at:
            return
        self._look_at = self._clock + _LOOK_S
        states = self._bring_up_to_date() if stopped else list(self._states.values())
        # A rank may be silent for longer while others, which do not wait for it, still make progress.
        patience = max(3 * self._beat_s, 2 * _TICK_S) if stopped else self.timeout
        silent = [state for state in states if state.beat and not state.done and self._clock - state.seen >= patience]
        if silent:
            self._bring_up_to_date()
            raise LaunchFailed(failure_messages.silent(silent, self._clock))
        if stopped:
            raise LaunchFailed(failure_messages.stuck(states, self.timeout))

    def _bring_up_to_date(self) -> list[RankState]:
        """The ranks, none of them behind what is known by the cells that are done: heartbeats come once a second."""
        states = list(self._states.values())
        for state in states:
            if self._next is not None and not state.done:
                state.catch_up(self._next)
        return states

    def _report_comes(self, trouble: Trouble) -> bool:
        if trouble.kind != "lost" or self._child is None or self._status is not None:
            return False
        return self._clock < trouble.until + _REPORT_S and not failure_messages.reports(self.output)

    def _are_all_gone(self) -> bool:
        return self._status is not None and self._lost == len(self._states)

    def _fail(self, trouble: Trouble) -> None:
        self._take_in()
        states, status = self._bring_up_to_date(), self._status
        if trouble.kind == "worlds":
            raise LaunchFailed(failure_messages.describe_worlds_apart(states, self.ranks, self._launcher))
        if status is not None and (trouble.kind == "launcher" or status < 0):
            lines = self._output.last_lines()
            kind = NotBegun if failure_messages.passes_by_itself(states, self.output) else LaunchFailed
            raise kind(failure_messages.launcher_ended(self._launcher, status, states, self.ranks, lines))
        raise LaunchFailed(
            failure_messages.describe_deaths(trouble.first, trouble.together, states, self.ranks, self.output)
        )

    def _take_in(self) -> None:
        """Read all that has arrived, so that no finished cell and no last line is lost."""
        direct = (peer for peer in self._states if not isinstance(peer, BranchedRank))
        for connection in (*direct, *self._branches):
            if not connection.closed:
                with contextlib.suppress(Garbage):
                    for line in connection.receive(1 << 30):
                        peer, message = self._read(connection, line)
                        if peer in self._states:
                            self._hand_on(message["type"], message)
        if self._child is not None:
            self._child.read()

    # the end

    def _is_finished(self) -> bool:
        if self._finish_by is None:
            return False
        if self._child is None:
            # Ranks of a foreign launcher end by themselves once each has the exit message.
            waiting = any(peer.waiting for peer in (*self._states, *self._branches))
            gone = not waiting and not self._branches.anybody_adrift
        else:
            gone = self._status is not None
        if not gone and self._clock >= self._finish_by:
            late = [state for state in self._states.values() if not state.lost]
            who = names(late) if late else f"the launcher {self._launcher}"
            was = "were" if len(late) > 1 else "was"
            self._notes.append(f"{who} {was} killed: all cells are done, but no rank ended for {self.timeout:g} s")
            self._killed = True
            return True
        return gone

    def _outcome(self) -> Outcome:
        self._take_in()
        if status := self._status:
            how = failure_messages.how_ended(status)
            self._notes.append(f"all cells are done, but the launcher {self._launcher} {how}")
        ordered = sorted(self._states.values(), key=lambda state: state.rank or 0)
        return Outcome(self.output, status, tuple(state.host for state in ordered), tuple(self._notes))

    def _give_up(self, problem: BaseException) -> None:
        try:
            if isinstance(problem, (OmbError, KeyboardInterrupt)):  # else a handler failed: call none again
                self._take_in()
        finally:
            code = INTERRUPTED if isinstance(problem, KeyboardInterrupt) else getattr(problem, "exit_code", ENVIRONMENT)
            if isinstance(problem, OmbError):
                self._handlers.failed(problem)
            self._send_all(wire.encode({"type": "exit", "code": code}))
            self._stop(failed=True)
        lines = self._output.last_lines()
        if lines and isinstance(problem, LaunchFailed):
            problem.add_note("\n  ".join(["last words of the launch:", *lines]))

    def _stop(self, failed: bool) -> None:
        self._branches.finish(_FINISH_S)
        for connection in (*self._states, *self._lobby):
            connection.close()
        local = (state for state in self._states.values() if self._is_here(state))
        known = [(state.pid, state.ticks) for state in local if state.ticks is not None]
        left: list[processes.Process] = []
        if self._child is not None:
            left = self._child.stop(self.token, known)
        elif failed:
            processes.gone(known, within=_GRACE_S)
            left = processes.end(self.token, known, within=1.0)
        if failed and not left:
            self._record.remove()
        self._record.close()
        leftovers.clean()
        self.close()

    @staticmethod
    def _is_here(state: RankState) -> bool:
        """Whether a rank's process runs, or ran, on this machine: host name and start time agree."""
        return state.host == socket.gethostname() and start_ticks(state.pid) in (state.ticks, None)
