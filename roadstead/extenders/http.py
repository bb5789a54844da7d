"""HttpCaller: an extender over HTTP/1.1, with bounds on time and size.

One connection per call. No proxy is looked up in the environment, no redirect is followed, and a
certificate is verified unless the configuration says `insecure`. The deadline is one for the whole
call: when it is over the socket is shut, whatever the other side is still sending.

Upstream: pkg/scheduler/extender.go (makeTransport, send).
"""

from __future__ import annotations

import base64
import http.client
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import SplitResult, unquote, urlsplit

from roadstead.config.model import ExtenderConfig
from roadstead.extenders.caller import ExtenderError, Payload
from roadstead.extenders.extender import shown_url
from roadstead.extenders.tls import tls_context
from roadstead.protocol.errors import InputError, cut_short

MAX_REQUEST_BYTES = 64 << 20
MAX_REPLY_BYTES = 64 << 20
_OK = 200
_CHUNK_BYTES = 1 << 16


class HttpCaller:
    """Reaches one extender. max_bytes: bounds of a request's and a reply's body."""

    def __init__(
        self,
        config: ExtenderConfig,
        *,
        max_request_bytes: int = MAX_REQUEST_BYTES,
        max_reply_bytes: int = MAX_REPLY_BYTES,
    ) -> None:
        self._url = config.url_prefix.rstrip("/")
        self._parts = _split(self._url)
        self._timeout_s = config.http_timeout_s
        self._context = tls_context(config.tls) if self._parts.scheme == "https" else None
        self._server_name = config.tls.server_name if config.tls is not None else ""
        self._max_request_bytes = max_request_bytes
        self._max_reply_bytes = max_reply_bytes

    def call(self, verb: str, payload: Payload) -> object:
        """POSTs to `urlPrefix/verb`; the reply's JSON. ExtenderError with both, and why."""
        url = f"{shown_url(self._url)}/{verb}"
        body = json.dumps(payload, separators=(",", ":")).encode()
        if len(body) > self._max_request_bytes:
            raise ExtenderError(
                f'Post "{url}": {len(body)} bytes are more than {self._max_request_bytes}'
            )
        deadline = _Deadline(self._timeout_s)
        try:
            with deadline:
                status, content = self._exchange(verb, body, deadline)
            deadline.check()
        except (OSError, http.client.HTTPException, ValueError) as failure:
            why = deadline.text if deadline.is_over else _why(failure)
            raise ExtenderError(f'Post "{url}": {why}') from None
        if status != _OK:
            raise ExtenderError(f"failed {verb} with extender at URL {url}, code {status}")
        return _decoded(content, url)

    def _exchange(self, verb: str, body: bytes, deadline: _Deadline) -> tuple[int, bytes]:
        with self._connected(deadline) as connection:
            query = f"?{self._parts.query}" if self._parts.query else ""
            target = f"{self._parts.path}{query}/{verb}"
            connection.request("POST", target, body, self._headers())
            reply = connection.getresponse()
            return reply.status, self._read(reply) if reply.status == _OK else b""

    def _read(self, reply: http.client.HTTPResponse) -> bytes:
        """The body. ValueError where it is too long, or ends before its length."""
        parts: list[bytes] = []
        left = self._max_reply_bytes + 1
        while left > 0 and (part := reply.read(min(left, _CHUNK_BYTES))):
            parts.append(part)
            left -= len(part)
        if left <= 0:
            raise ValueError(f"the reply has more than {self._max_reply_bytes} bytes")
        if reply.length:
            raise ValueError(f"the reply ended {reply.length} bytes too early")
        return b"".join(parts)

    @contextmanager
    def _connected(self, deadline: _Deadline) -> Iterator[http.client.HTTPConnection]:
        host, port = self._parts.hostname or "", self._parts.port
        connection = http.client.HTTPConnection(
            host, port or (443 if self._context else 80), timeout=self._timeout_s
        )
        try:
            connection.connect()
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
    """Shuts the sockets it watches when the time is over."""

    def __init__(self, timeout_s: float) -> None:
        self.text = f"no whole answer within {timeout_s:g} s"
        self.is_over = False
        self._sock: socket.socket | None = None
        self._lock = threading.Lock()
        self._timer = threading.Timer(timeout_s, self._shut)
        self._timer.daemon = True

    def __enter__(self) -> None:
        self._timer.start()

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()

    def watch(self, sock: socket.socket) -> None:
        """Shuts this one from now on. TimeoutError where the time is over already."""
        with self._lock:
            self._sock = sock
        self.check()

    def check(self) -> None:
        """TimeoutError where the time is over: what was read may have been cut."""
        if self.is_over:
            raise TimeoutError(self.text)

    def _shut(self) -> None:
        with self._lock:
            self.is_over = True
            if self._sock is not None:
                _shutdown(self._sock)


def _shutdown(sock: socket.socket) -> None:
    try:
        # Of a TLS socket the plain one: `shutdown` of the other would touch what a thread reads.
        socket.socket.shutdown(sock, socket.SHUT_RDWR)
    except OSError:
        return


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and parts.hostname and (parts.port or 1)
    except ValueError:
        sound = False
    if not sound or not url.isascii() or not url.isprintable() or " " in url:
        raise InputError(
            "is not a URL (want e.g. http://127.0.0.1:8888/scheduler)",
            field="extenders[].urlPrefix",
            value=cut_short(shown_url(url)),
        )
    return parts


def _why(failure: Exception) -> str:
    if isinstance(failure, TimeoutError):
        return "no answer in time"
    if isinstance(failure, ssl.SSLCertVerificationError):
        return f"the certificate is not trusted: {failure.verify_message}"
    text = getattr(failure, "strerror", None) or str(failure) or type(failure).__name__
    return text[:200]


def _decoded(content: bytes, url: str) -> object:
    try:
        return json.loads(content, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as failure:
        why = "it is nested too deep" if isinstance(failure, RecursionError) else str(failure)
        raise ExtenderError(f'Post "{url}": the reply is not JSON: {why[:200]}') from None


def _refuse_constant(text: str) -> float:
    raise ValueError(f"{text} is not a number")
