"""Escapes in JSON text as Go's encoding/json reads them."""

from __future__ import annotations

import re

_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_ESCAPE = re.compile(
    # Half a surrogate pair that is not followed by, or does not follow, the other half; or any
    # other escape, which is consumed so that the backslash in it does not start one.
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|(?P<half>\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
    r"|\\."
)


def without_half_pairs(text: str) -> str:
    """Replace escapes of half a surrogate pair by the escape of U+FFFD, of the same length.

    Python would decode them to characters that are not valid Unicode.
    """
    if not _HALF.search(text):
        return text
    return _ESCAPE.sub(lambda each: r"\ufffd" if each["half"] else each[0], text)
