"""Errors of addresses, as Go's net/netip words them.

Upstream: Go's net/netip (ParseAddr, parseIPv4Fields, parseIPv6).
"""

from __future__ import annotations

from roadstead.facts.quoting import go_quote

_HEX = frozenset("0123456789abcdefABCDEF")
_DIGITS = frozenset("0123456789")
_OTHER_ERROR = ("unable to parse IP", "")
"""Go's error of a text without ".", ":" and "%"; also returned where Go finds no error."""


def address_error(text: str) -> str:
    """Return the error of an address that does not parse."""
    error, text_from_error = _error(text)
    position = f" (at {go_quote(text_from_error)})" if text_from_error else ""
    return f"ParseAddr({go_quote(text)}): {error}{position}"


def _error(text: str) -> tuple[str, str]:
    """Return the error, and the text from its position to the end; "" if Go's error has none."""
    for char in text:
        if char == ".":
            return _ipv4_error(text)
        if char == ":":
            return _ipv6_error(text)
        if char == "%":
            return "missing IPv6 address", ""
    return _OTHER_ERROR


def _ipv4_error(text: str) -> tuple[str, str]:
    # Number of complete fields, then value and number of digits of the current one.
    fields, value, digits = 0, 0, 0
    for at, char in enumerate(text):
        if char in _DIGITS:
            if digits == 1 and value == 0:
                return "IPv4 field has octet with leading zero", ""
            value, digits = value * 10 + int(char), digits + 1
            if value > 255:
                return "IPv4 field has value >255", ""
        elif char == ".":
            if at in (0, len(text) - 1) or text[at - 1] == ".":
                return "IPv4 field must have at least one digit", text[at:]
            if fields == 3:
                return "IPv4 address too long", ""
            fields, value, digits = fields + 1, 0, 0
        else:
            return "unexpected character", text[at:]
    return ("IPv4 address too short", "") if fields < 3 else _OTHER_ERROR


def _ipv6_error(whole: str) -> tuple[str, str]:
    text, percent, zone = whole.partition("%")
    if percent and not zone:
        return "zone must be a non-empty string", ""
    has_ellipsis = text.startswith("::")
    text = text[2:] if has_ellipsis else text
    # Number of bytes of the address that are read so far.
    read_bytes = 0
    while read_bytes < 16 and text:
        size = next((at for at, char in enumerate(text) if char not in _HEX), len(text))
        if size > 4:
            return "each group must have 4 or less digits", text
        if size == 0:
            return "each colon-separated field must have at least one digit", text
        if text[size : size + 1] == ".":
            return _embedded_error(text, read_bytes, has_ellipsis)
        read_bytes, text = read_bytes + 2, text[size:]
        if not text:
            break
        if text[0] != ":":
            return "unexpected character, want colon", text
        if len(text) == 1:
            return "colon must be followed by more characters", text
        text = text[1:]
        if text[0] == ":":
            if has_ellipsis:
                return "multiple :: in address", text
            has_ellipsis, text = True, text[1:]
    if text:
        return "trailing garbage after address", text
    if read_bytes < 16 and not has_ellipsis:
        return "address string too short", ""
    if read_bytes == 16 and has_ellipsis:
        return "the :: must expand to at least one field of zeros", ""
    return _OTHER_ERROR


def _embedded_error(text: str, read_bytes: int, has_ellipsis: bool) -> tuple[str, str]:
    if not has_ellipsis and read_bytes != 12:
        return "embedded IPv4 address must replace the final 2 fields of the address", text
    if read_bytes + 4 > 16:
        return "too many hex fields to fit an embedded IPv4 at the end of the address", text
    error = _ipv4_error(text)
    if error == _OTHER_ERROR and has_ellipsis and read_bytes + 4 == 16:
        return "the :: must expand to at least one field of zeros", ""
    return error
