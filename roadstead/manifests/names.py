"""Names that controllers make up, made up here so that the same manifest gives the same name."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Iterable

from roadstead.protocol.objects import PodTemplate
from roadstead.protocol.objects.base import NAME_MAX_CHARS

# Upstream's alphabet (apimachinery/pkg/util/rand): no vowels, nothing that is easily misread.
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_CHARS = 5
_HASH_CHARS = 10
_BASE_MAX_CHARS = 58


def suffix_of(text: str, chars: int = _SUFFIX_CHARS) -> str:
    """Letters and digits that stand for a text."""
    digest = hashlib.sha256(text.encode(errors="surrogatepass")).digest()
    return "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest[:chars])


def generated_name(base: str, index: int, again: int = 0) -> str:
    """The name of the index-th object that a controller makes from `base` (SimpleNameGenerator).

    again: how many names before this one were taken.
    """
    text = f"{base}{index}/{again}" if again else f"{base}{index}"
    return f"{base[:_BASE_MAX_CHARS]}{suffix_of(text)}"


class PodNames:
    """Names that are made up, each once among the pods of its namespace.

    One that is taken is drawn again, as controllers do: of 40,000 pods of one replica set some
    fifty would have the name of another one.
    """

    def __init__(self, taken: Iterable[tuple[str, str]]) -> None:
        self._taken: defaultdict[str, set[str]] = defaultdict(set)
        for namespace, name in taken:
            self._taken[namespace].add(name)

    def take(self, namespace: str, draw: Callable[[int], str]) -> str:
        """The first name of those that `draw` makes up that is free. draw: of the draws before."""
        taken, again = self._taken[namespace], 0
        while (name := draw(again)) in taken:
            again += 1
        taken.add(name)
        return name


def joined_name(base: str, *parts: str) -> str:
    """Parts joined by dashes, the first cut so that the whole is no longer than a name may be."""
    tail = "-".join(("", *parts))
    return (base[: max(NAME_MAX_CHARS - len(tail), 1)] + tail)[:NAME_MAX_CHARS]


def template_hash(template: PodTemplate) -> str:
    """What `pod-template-hash` and revisions stand for: equal templates, equal hashes."""
    plain = template.model_dump(mode="json", exclude_defaults=True)
    return suffix_of(json.dumps(plain, sort_keys=True), _HASH_CHARS)
