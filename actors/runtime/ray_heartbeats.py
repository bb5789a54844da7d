"""Heartbeats of the nodes that a run uses: a thread that connects to their raylets.

Ray notices a lost node after some 16 s; connecting shows it in 2 s. Raylets are asked, not actors:
an actor that computes or compiles does not answer for seconds, although its node is well. A raylet
that is paused still accepts connections, and its actors go on working, so its node is not lost.
"""

from __future__ import annotations

import contextlib
import errno
import selectors
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack

Address = tuple[str, int]

HEAD = "head"
"""Key of the head's server among the nodes' ids, which are hexadecimal."""

BEAT_S, CONNECT_S = 0.3, 0.35
"""Pause between two connections to each node, and the deadline of each."""

MISSED_BEAT_S = 0.15
"""The pause while a node does not answer, so that its loss is known sooner."""

LOST_BEATS = 3
"""Connections in a row that fail until a node counts as lost, for the rest of the run: 0.6 s if its
raylet ended, 1.7 s if the machine is gone. Beats are counted, not seconds, because this process may
be stopped for a while, too."""

DRIVER_LOST_BEATS = 10
"""The same for a process of the run and the driver's node: 3 to 7 s. Ray itself would leave the
process running for 16 s or more after the machine is gone."""

HEAD_LOST_BEATS = 60
"""The same for the head's server: 18 to 42 s. Actors work without it meanwhile, and it may be
restarted. Ray ends this process 60 s after the head was lost, without a message."""

CONNECTING = (0, errno.EINPROGRESS, errno.EWOULDBLOCK)
"""Results of `connect_ex` with which a connection is made or under way; others are failures."""


def address_of(text: str) -> Address:
    """Return the address that HOST:PORT names; an IPv6 host is in brackets."""
    host, _, port = text.rpartition(":")
    return host.removeprefix("[").removesuffix("]"), int(port)


def connected(addresses: Mapping[str, Address], timeout_s: float) -> set[str]:
    """Return which of the addresses, by key, accept a connection within the time."""
    accepting: set[str] = set()
    links: dict[int, socket.socket] = {}
    with selectors.DefaultSelector() as waiting, ExitStack() as opened:
        for key, address in addresses.items():
            family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
            link = opened.enter_context(socket.socket(family, socket.SOCK_STREAM))
            link.setblocking(False)
            if link.connect_ex(address) in CONNECTING:
                links[link.fileno()] = link
                waiting.register(link, selectors.EVENT_WRITE, key)
        until_s = time.monotonic() + timeout_s
        while waiting.get_map() and (left_s := until_s - time.monotonic()) > 0:
            for entry, _ in waiting.select(left_s):
                if links[entry.fd].getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0:
                    accepting.add(entry.data)
                waiting.unregister(entry.fileobj)
    return accepting


def await_loss(
    address: Address,
    beats: int,
    connect: Callable[[Mapping[str, Address], float], set[str]] = connected,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Return when so many connections in a row to the address have failed."""
    misses = 0
    while misses < beats:
        pause(BEAT_S)
        # An error, such as too many open files, is of this process: it shows nothing of the node.
        with contextlib.suppress(OSError):
            misses = 0 if connect({"": address}, CONNECT_S) else misses + 1


class Heartbeats:
    """The thread that connects to nodes, and which nodes are lost.

    _watched: raylets by node id. _misses: number of failed connections in a row, by node id, or
    `HEAD`. _is_node_silent: whether a node that is not lost yet did not answer.
    """

    def __init__(
        self,
        head: Address | None,
        connect: Callable[[Mapping[str, Address], float], set[str]] = connected,
    ) -> None:
        """head: address of the head's server; None if it is not watched."""
        self._head = head
        self._connect = connect
        self._watched: dict[str, Address] = {}
        self._misses: Counter[str] = Counter()
        self._is_over = threading.Event()
        self._thread: threading.Thread | None = None
        self._is_node_silent = False
        self.lost: frozenset[str] = frozenset()
        self.is_head_lost = False
        self.is_head_silent = False
        """Whether the head did not answer lately; it may still come back."""

    def watch(self, nodes: Mapping[str, Address]) -> None:
        """Watch these nodes, too."""
        self._watched = {**self._watched, **nodes}

    def start(self) -> None:
        """Start the thread that connects; a second call does nothing."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="ray-heartbeats", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Let the thread end after its present connections, without waiting for it."""
        self._is_over.set()

    def _run(self) -> None:
        while not self._is_over.wait(MISSED_BEAT_S if self._is_node_silent else BEAT_S):
            # As in `await_loss`.
            with contextlib.suppress(OSError):
                self.beat()

    def beat(self) -> None:
        """Connect to all watched nodes once, and record which of them are lost."""
        watched = {key: each for key, each in self._watched.items() if key not in self.lost}
        if self._head is not None:
            watched[HEAD] = self._head
        answering = self._connect(watched, CONNECT_S)
        for key in watched:
            self._misses[key] = 0 if key in answering else self._misses[key] + 1
        lost = {key for key in watched if key != HEAD and self._misses[key] >= LOST_BEATS}
        self.lost = self.lost | lost
        # Shorter pauses only for nodes: the head has far more beats until it is lost.
        self._is_node_silent = any(self._misses[key] for key in watched.keys() - {HEAD, *lost})
        self.is_head_silent = self._misses[HEAD] >= LOST_BEATS
        self.is_head_lost = self._misses[HEAD] >= HEAD_LOST_BEATS
