"""The result of a replay: compared and different decisions, and the reasons of missing ones.

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
    """Return a value of a recording that must be a list."""
    assert isinstance(value, list)
    return value


@dataclass(slots=True)
class RecordingResult:
    """The result of recorded decisions on one path.

    decisions: number of recorded ones. compared: how many were compared with ours.
    mismatches: "where: what differs; …", one for each decision that differs. unsupported: number of
    decisions that need something not implemented yet, by its name; partly: those compared except
    for PostFilter. ours: our answers, by the recording's keys.
    """

    decisions: int = 0
    compared: int = 0
    mismatches: list[str] = field(default_factory=list)
    unsupported: Counter[str] = field(default_factory=Counter)
    partly: Counter[str] = field(default_factory=Counter)
    ours: dict[str, list[Json]] = field(default_factory=dict)

    def compare(self, where: str, key: str, ours: Json, differences: Iterable[str]) -> None:
        """Count a compared decision."""
        self.compared += 1
        self.ours.setdefault(key, []).append(ours)
        found = "; ".join(differences)
        if found:
            self.mismatches.append(f"{where}: {found}")

    def lack(self, what: str, key: str, field: str = "", **named: object) -> None:
        """Count a decision that needs something not implemented yet, because of a pod's field."""
        self.unsupported[what] += 1
        text = f"{what}: {field}" if field else what
        self.ours.setdefault(key, []).append({**named, "unsupported": text})

    def add(self, other: RecordingResult) -> None:
        """Add counts and mismatches of another case, but not its answers."""
        self.decisions += other.decisions
        self.compared += other.compared
        self.mismatches += other.mismatches
        self.unsupported += other.unsupported
        self.partly += other.partly

    def validate(self) -> None:
        """Assert that every decision was counted either as compared or as unsupported."""
        counted = self.compared + self.unsupported.total()
        assert counted == self.decisions, (
            f"{counted} of {self.decisions} decisions are accounted for"
        )


def differing(ours: Json, theirs: Json) -> list[str]:
    """Return `field: ours is not theirs` for each field of two flat answers that differs."""
    return [
        differs(name, ours.get(name), theirs.get(name))
        for name in sorted(ours.keys() | theirs.keys())
        if ours.get(name) != theirs.get(name)
    ]


def differs(name: str, ours: object, theirs: object) -> str:
    """Return both values of a field; of lists and objects, only the first differing part.

    Lists of different lengths and objects with different keys are returned whole.
    """
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
