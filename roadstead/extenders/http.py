"""HttpCaller: an extender's verbs as JSON over a transport.

Upstream: pkg/scheduler/extender.go (send).
"""

from __future__ import annotations

import json

from roadstead.config.model import ExtenderConfig
from roadstead.extenders.caller import (
    ExtenderError,
    Payload,
    Transport,
    TransportError,
    shown_url,
)
from roadstead.extenders.go_json import decode_first
from roadstead.extenders.transport import OK, SocketTransport

MAX_REQUEST_BYTES = 64 << 20


class HttpCaller:
    """Call one extender, over sockets unless another transport is given.

    max_request_bytes: maximum size of a request's body.
    """

    def __init__(
        self,
        config: ExtenderConfig,
        transport: Transport | None = None,
        *,
        max_request_bytes: int = MAX_REQUEST_BYTES,
    ) -> None:
        self._url = shown_url(config.url_prefix.rstrip("/"))
        self._transport = SocketTransport(config) if transport is None else transport
        self._max_request_bytes = max_request_bytes

    def call(self, verb: str, payload: Payload) -> object:
        """POST to `urlPrefix/verb`; return the reply's JSON. ExtenderError with upstream's text."""
        url = f"{self._url}/{verb}"
        body = json.dumps(payload, separators=(",", ":")).encode()
        if len(body) > self._max_request_bytes:
            raise ExtenderError(
                f'Post "{url}": {len(body)} bytes are more than {self._max_request_bytes}'
            )
        try:
            status, content = self._transport.post(verb, body)
        except TransportError as failure:
            why = str(failure) if failure.is_in_body else f'Post "{url}": {failure}'
            raise ExtenderError(why) from None
        if status != OK:
            raise ExtenderError(f"failed {verb} with extender at URL {url}, code {status}")
        try:
            return decode_first(content)
        except ValueError as wrong:
            raise ExtenderError(str(wrong)) from None
