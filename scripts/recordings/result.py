"""What came of a replay: decisions compared, decisions that differ, and what is missing for others.

Every decision of a recording ends in exactly one of two counts, compared or unsupported; nothing is
passed over in silence (`validate`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, object]


def listed(value: object) -> list[Any]:
    """A list of a recording."""
    assert isinstance(value, list)
    return value


@dataclass(slots=True)
class Result:
    """What came of recorded decisions on one path.

    decisions: how many the recordings hold. compared: how many were held against ours.
    mismatches: "where: what differs; …", one for each decision that differs. unsupported: decisions
    that need what is not there yet, by what they need; partly: decisions compared but for
    PostFilter. ours: our own answers by the key under which the recording holds its own.
    """

    decisions: int = 0
    compared: int = 0
    mismatches: list[str] = field(default_factory=list)
    unsupported: Counter[str] = field(default_factory=Counter)
    partly: Counter[str] = field(default_factory=Counter)
    ours: dict[str, list[Json]] = field(default_factory=dict)

    def compare(self, where: str, key: str, ours: Json, differences: Iterable[str]) -> None:
        """One decision was compared."""
        self.compared += 1
        self.ours.setdefault(key, []).append(ours)
        found = "; ".join(differences)
        if found:
            self.mismatches.append(f"{where}: {found}")

    def lack(self, what: str, key: str, field: str = "", **named: object) -> None:
        """One decision needs what is not there yet, because of a field of what is decided."""
        self.unsupported[what] += 1
        text = f"{what}: {field}" if field else what
        self.ours.setdefault(key, []).append({**named, "unsupported": text})

    def add(self, other: Result) -> None:
        """Counts and mismatches of another case; the answers stay with their case."""
        self.decisions += other.decisions
        self.compared += other.compared
        self.mismatches += other.mismatches
        self.unsupported += other.unsupported
        self.partly += other.partly

    def validate(self) -> None:
        """Asserts that every decision was either compared or counted with what it needs."""
        told = self.compared + self.unsupported.total()
        assert told == self.decisions, f"{told} of {self.decisions} decisions are accounted for"


def differing(ours: Json, theirs: Json) -> list[str]:
    """`field: ours is not theirs` for each field of two flat answers that differs."""
    return [
        differs(name, ours.get(name), theirs.get(name))
        for name in sorted(ours.keys() | theirs.keys())
        if ours.get(name) != theirs.get(name)
    ]


def differs(name: str, ours: object, theirs: object) -> str:
    """Both sides of a field that differs; of equally shaped parts only the first that does."""
    parts: list[tuple[str, object, object]] = []
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        pairs = enumerate(zip(ours, theirs, strict=True))
        parts = [(f"{name}[{index}]", mine, yours) for index, (mine, yours) in pairs]
    elif isinstance(ours, dict) and isinstance(theirs, dict) and ours.keys() == theirs.keys():
        parts = [(f"{name}.{key}", mine, theirs[key]) for key, mine in ours.items()]
    for part, mine, yours in parts:
        if mine != yours:
            return differs(part, mine, yours)
    return f"{name}: {ours!r} is not {theirs!r}"
