"""Names that controllers generate; here equal manifests give equal names.

A generated name is a base, the `generateName` of the API, and a suffix of letters and digits.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable

from roadstead.protocol.generated_names import (
    ALPHABET,
    BASE_MAX_CHARS,
    SUFFIX_CHARS,
    suffix_of,
)
from roadstead.protocol.objects import PodTemplate
from roadstead.protocol.objects.base import NAME_MAX_CHARS

_HASH_CHARS = 10

# Coprime to the size of the alphabet, so that different numbers have different suffixes; the
# suffixes of consecutive numbers share few characters.
_SPREAD = 8_675_309
# Added so that the suffix of 0 is not a single repeated character.
_OFFSET = 4_112_521


def generated_name(base: str, index: int, collisions: int = 0) -> str:
    """Return the name of a controller's index-th object with this base (SimpleNameGenerator).

    collisions: number of earlier names for this object that were in use.
    """
    text = f"{base}{index}/{collisions}" if collisions else f"{base}{index}"
    return f"{base[:BASE_MAX_CHARS]}{suffix_of(text)}"


def unique_suffix(number: int) -> str:
    """Return the suffix of a controller's n-th pod: different numbers have different suffixes.

    Unlike `PodNames`, it needs no set of names in use, which would grow in a long simulation.
    """
    length = SUFFIX_CHARS
    while number >= len(ALPHABET) ** length:
        length += 1
    scrambled = (number * _SPREAD + _OFFSET) % len(ALPHABET) ** length
    chars = []
    for _ in range(length):
        scrambled, digit = divmod(scrambled, len(ALPHABET))
        chars.append(ALPHABET[digit])
    return "".join(chars)


class PodNames:
    """Generated names, unique among the pods of a namespace.

    If a name is in use, another one is generated, as controllers do: of 40,000 pods of one replica
    set some fifty would otherwise have the name of another pod.
    """

    def __init__(self, used: Iterable[tuple[str, str]]) -> None:
        self._used: defaultdict[str, set[str]] = defaultdict(set)
        for namespace, name in used:
            self._used[namespace].add(name)

    def allocate(self, namespace: str, candidate: Callable[[int], str]) -> str:
        """Reserve and return the first free name. candidate: number of collisions → name."""
        used, collisions = self._used[namespace], 0
        while (name := candidate(collisions)) in used:
            collisions += 1
        used.add(name)
        return name


def joined_name(base: str, *parts: str) -> str:
    """Join base and parts by dashes; the base is cut so that the name is not too long."""
    tail = "-".join(("", *parts))
    return (base[: max(NAME_MAX_CHARS - len(tail), 1)] + tail)[:NAME_MAX_CHARS]


def template_hash(template: PodTemplate) -> str:
    """Return the hash of a template, for `pod-template-hash` and revisions of controllers."""
    plain = template.model_dump(mode="json", exclude_defaults=True)
    return suffix_of(json.dumps(plain, sort_keys=True), _HASH_CHARS)
