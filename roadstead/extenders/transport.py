"""SocketTransport: HTTP/1.1 to one extender, with limits on time and size.

Each call has its own connection. Proxies in the environment are not used, redirects are not
followed, and certificates are verified unless the configuration says `insecure`. One deadline holds
for the whole call: when it passes, the socket is shut down even while the reply is being received.
Only connecting may take longer: the lookup of the host's name has no limit, and each of its
addresses is tried for up to the timeout.

Errors have the texts of Go's net/http.

Upstream: pkg/scheduler/extender.go (makeTransport, send).
"""

from __future__ import annotations

import base64
import http.client
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import SplitResult, unquote, urlsplit

from roadstead.config.model import ExtenderConfig
from roadstead.extenders.caller import TransportError, shown_url
from roadstead.extenders.tls import tls_context
from roadstead.protocol.errors import InputError, cut_short

MAX_REPLY_BYTES = 64 << 20
OK = 200
"""The status of replies whose body is read."""

_CHUNK_BYTES = 1 << 16
_LATE = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
_LATE_BODY = "context deadline exceeded (Client.Timeout or context cancellation while reading body)"


class SocketTransport:
    """Send requests to one extender. max_reply_bytes: maximum size of a reply's body."""

    def __init__(self, config: ExtenderConfig, max_reply_bytes: int = MAX_REPLY_BYTES) -> None:
        self._parts = _split(config.url_prefix.rstrip("/"))
        self._timeout_s = config.http_timeout_s
        self._context = tls_context(config.tls) if self._parts.scheme == "https" else None
        self._server_name = config.tls.server_name if config.tls is not None else ""
        self._max_reply_bytes = max_reply_bytes

    def post(self, verb: str, body: bytes) -> tuple[int, bytes]:
        """Return the status of the reply, and its body if the status is 200, else b"".

        Raises TransportError if there is no reply.
        """
        deadline = _Deadline(self._timeout_s)
        try:
            with deadline:
                reply = self._exchange(verb, body, deadline)
            deadline.check()
        except (OSError, http.client.HTTPException, ValueError) as failure:
            if deadline.is_over or isinstance(failure, TimeoutError):
                late = _LATE_BODY if deadline.is_in_body else _LATE
                raise TransportError(late, is_in_body=deadline.is_in_body) from None
            raise TransportError(
                self._error_text(failure), is_in_body=deadline.is_in_body
            ) from None
        return reply

    def _exchange(self, verb: str, body: bytes, deadline: _Deadline) -> tuple[int, bytes]:
        with self._connected(deadline) as connection:
            query = f"?{self._parts.query}" if self._parts.query else ""
            # As upstream, which appends the verb to the whole URL, behind a query if it has one.
            target = f"{self._parts.path}{query}/{verb}"
            connection.request("POST", target, body, self._headers())
            reply = connection.getresponse()
            deadline.is_in_body = True
            return reply.status, self._read(reply) if reply.status == OK else b""

    def _read(self, reply: http.client.HTTPResponse) -> bytes:
        """Return the body; ValueError if it is too long, or shorter than its Content-Length."""
        parts: list[bytes] = []
        left = self._max_reply_bytes + 1
        while left > 0 and (part := reply.read(min(left, _CHUNK_BYTES))):
            parts.append(part)
            left -= len(part)
        if left <= 0:
            raise ValueError(f"the reply has more than {self._max_reply_bytes} bytes")
        if reply.length:
            raise ValueError("unexpected EOF")
        return b"".join(parts)

    @contextmanager
    def _connected(self, deadline: _Deadline) -> Iterator[http.client.HTTPConnection]:
        host = self._parts.hostname or ""
        connection = http.client.HTTPConnection(host, self._port, timeout=self._timeout_s)
        try:
            self._connect(connection, host)
            deadline.watch(connection.sock)
            if self._context is not None:
                name = self._server_name or host
                secured = self._context.wrap_socket(
                    connection.sock, server_hostname=name, do_handshake_on_connect=False
                )
                connection.sock = secured
                deadline.watch(secured)
                secured.do_handshake()
            yield connection
        finally:
            connection.close()

    @property
    def _port(self) -> int:
        return self._parts.port or (443 if self._context else 80)

    def _connect(self, connection: http.client.HTTPConnection, host: str) -> None:
        """Connect; ConnectionError with Go's text if that fails, TimeoutError if it is too late."""
        try:
            connection.connect()
        except TimeoutError:
            raise
        except socket.gaierror:
            raise ConnectionError(f"dial tcp: lookup {host}: no such host") from None
        except OSError as failure:
            where = f"[{host}]:{self._port}" if ":" in host else f"{host}:{self._port}"
            why = (failure.strerror or str(failure)).lower()
            raise ConnectionError(f"dial tcp {where}: connect: {why}") from None

    def _error_text(self, failure: Exception) -> str:
        """Return the text of Go's net/http for a failure; TLS errors have texts of their own."""
        if isinstance(failure, ssl.SSLCertVerificationError):
            return f"the certificate is not trusted: {failure.verify_message}"
        if isinstance(failure, http.client.RemoteDisconnected):
            return "EOF"
        if isinstance(failure, http.client.BadStatusLine):
            line = cut_short(str(failure).strip().strip("'").removesuffix("\\r\\n"))
            return f"net/http: HTTP/1.x transport connection broken: malformed HTTP response {line}"
        if isinstance(failure, ConnectionResetError):
            return "read: connection reset by peer"
        text = getattr(failure, "strerror", None) or str(failure) or type(failure).__name__
        return text[:200]

    def _headers(self) -> dict[str, str]:
        headers = {
            "Host": self._parts.netloc.rpartition("@")[2],
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Connection": "close",
        }
        if self._parts.username is not None:
            user = f"{unquote(self._parts.username)}:{unquote(self._parts.password or '')}"
            headers["Authorization"] = f"Basic {base64.b64encode(user.encode()).decode()}"
        return headers


class _Deadline:
    """Shut down the watched socket when the time is over.

    is_in_body: the status was read, the body is being read.
    """

    def __init__(self, timeout_s: float) -> None:
        self.is_over = self.is_in_body = False
        self._sock: socket.socket | None = None
        self._lock = threading.Lock()
        self._timer = threading.Timer(timeout_s, self._shut)
        self._timer.daemon = True

    def __enter__(self) -> None:
        self._timer.start()

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()

    def watch(self, sock: socket.socket) -> None:
        """Watch this socket in place of the one before; TimeoutError if the time is over."""
        with self._lock:
            self._sock = sock
        self.check()

    def check(self) -> None:
        """Raise TimeoutError if the time is over: the data that was read may be incomplete."""
        if self.is_over:
            raise TimeoutError

    def _shut(self) -> None:
        with self._lock:
            self.is_over = True
            if self._sock is not None:
                _shutdown(self._sock)


def _shutdown(sock: socket.socket) -> None:
    try:
        # The plain shutdown, also for a TLS socket: SSLSocket.shutdown would drop the TLS state
        # that another thread is reading with.
        socket.socket.shutdown(sock, socket.SHUT_RDWR)
    except OSError:
        return


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in ("http", "https") and parts.hostname and (parts.port or 1)
    except ValueError:
        is_valid = False
    if not is_valid or not url.isascii() or not url.isprintable() or " " in url:
        raise InputError(
            "is not a URL (want e.g. http://127.0.0.1:8888/scheduler)",
            field="urlPrefix",
            value=cut_short(shown_url(url)),
        )
    return parts
