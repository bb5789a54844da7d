"""Suffixes of names that the API server generates: here a hash, so that runs are reproducible."""

from __future__ import annotations

import hashlib
from typing import Final

# Upstream's alphabet (apimachinery/pkg/util/rand): no vowels, no easily misread characters.
ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
SUFFIX_CHARS: Final = 5
BASE_MAX_CHARS: Final = 58
"""Characters of a name before its suffix; longer ones are cut (SimpleNameGenerator)."""


def suffix_of(text: str, chars: int = SUFFIX_CHARS) -> str:
    """Return letters and digits from the hash of a text, such as the name of the owner."""
    digest = hashlib.sha256(text.encode(errors="surrogatepass")).digest()
    return "".join(ALPHABET[byte % len(ALPHABET)] for byte in digest[:chars])
