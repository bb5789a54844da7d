"""URLs, read as Go's net/url does for request URIs.

Upstream: apiserver pkg/cel/library/urls.go; Go's net/url (ParseRequestURI).
"""

from __future__ import annotations

import re

from roadstead.cel.values import Url
from roadstead.facts.quoting import go_quote

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*+):")
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2}).{0,2}", re.DOTALL)
_PORT = re.compile(r"(?::[0-9]*+)?")
_HOST = re.compile(r"[A-Za-z0-9\-._~!$&'()*+,;=:\[\]<>\"%\x80-\U0010ffff]*+")
# Paths of these characters are printed as they were written.
_PATH_PLAIN = re.compile(r"[A-Za-z0-9\-._~!$&'()*+,;=:@/\[\]%]*+")
# Bytes that are not escaped in any other path.
_PATH_SAFE = frozenset(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~$&+,/:;=@"
)


class UrlError(ValueError):
    """No request URI; for most errors the text is upstream's."""


def parse_url(text: str) -> Url:
    """Parse an absolute URI or an absolute path.

    Raises:
        UrlError: the text is neither.
    """
    try:
        return _parsed(text)
    except UrlError as error:
        raise UrlError(f"parse {go_quote(text)}: {error}") from None


def _parsed(text: str) -> Url:
    if any(char < " " or char == "\x7f" for char in text):
        raise UrlError("net/url: invalid control character in URL")
    if not text:
        raise UrlError("empty url")
    if text.startswith(":"):
        raise UrlError("missing protocol scheme")
    match = _SCHEME.match(text)
    scheme = match[1].lower() if match else ""
    # Host and path: `//host/path` or `/path`.
    location, _, query = (text[match.end() :] if match else text).partition("?")
    if not location.startswith("/"):
        if scheme:
            return _url_without_path(text, scheme, query)
        raise UrlError("invalid URI for request")
    host, path = "", location
    # As Go: without a scheme, "///" begins a path.
    if location.startswith("//") and (scheme or not location.startswith("///")):
        authority, slash, path_end = location[2:].partition("/")
        path = slash + path_end
        host = _host(authority)
    _check_escapes(path)
    return _url_with_path(text, scheme, host, path, query)


def _url_without_path(text: str, scheme: str, query: str) -> Url:
    return Url(text, scheme, "", "", "", "", _query(query))


def _host(authority: str) -> str:
    """Return host and port of `user:password@host:port`, after a check of all."""
    userinfo, at, host = authority.rpartition("@")
    if at and not re.fullmatch(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*+", userinfo):
        raise UrlError("net/url: invalid userinfo")
    if host.startswith("["):
        end = host.rfind("]")
        if end < 0:
            raise UrlError("missing ']' in host")
        port = host[end + 1 :]
    else:
        port = host[host.rfind(":") :] if ":" in host else ""
    if not _PORT.fullmatch(port):
        raise UrlError(f"invalid port {go_quote(port)} after host")
    if not _HOST.fullmatch(host):
        bad = next(char for char in host if not _HOST.fullmatch(char))
        raise UrlError(f"invalid character {go_quote(bad)} in host name")
    _check_escapes(host)
    return host


def _check_escapes(text: str) -> None:
    match = _BAD_ESCAPE.search(text)
    if match:
        raise UrlError(f"invalid URL escape {go_quote(match[0])}")


def _url_with_path(text: str, scheme: str, host: str, path: str, query: str) -> Url:
    hostname, port = host, ""
    colon = host.rfind(":")
    if colon >= 0 and not host.endswith("]"):
        hostname, port = host[:colon], host[colon + 1 :]
    hostname = hostname.removeprefix("[").removesuffix("]") if host.startswith("[") else hostname
    escaped = path if _PATH_PLAIN.fullmatch(path) else _escaped(_unescaped(path))
    return Url(text, scheme, host, hostname, port, escaped, _query(query))


def _unescaped(text: str) -> bytes:
    raw = text.encode("utf-8", "surrogatepass").decode("latin-1")
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), raw).encode("latin-1")


def _escaped(raw: bytes) -> str:
    return "".join(chr(byte) if byte in _PATH_SAFE else f"%{byte:02X}" for byte in raw)


def _query(text: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    values_by_name: dict[str, list[str]] = {}
    for pair in text.split("&"):
        # Like upstream, values_by_name with a semicolon or a wrong escape are left out.
        if not pair or ";" in pair or _BAD_ESCAPE.search(pair):
            continue
        name, _, value = pair.replace("+", " ").partition("=")
        values_by_name.setdefault(_decoded(name), []).append(_decoded(value))
    return tuple((name, tuple(values)) for name, values in values_by_name.items())


def _decoded(text: str) -> str:
    return _unescaped(text).decode("utf-8", "replace")
