"""Notes on the translation of each part of an older document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

ADDRESSES: Final = ("healthzBindAddress", "metricsBindAddress")
"""Fields of documents before v1beta3 that v1 does not have."""


@dataclass(frozen=True, slots=True)
class TranslationNote:
    """One change: the field of the source, and its translation or why it was dropped."""

    field: str
    text: str

    def __str__(self) -> str:
        return f"{self.field}: {self.text}"

    def document(self) -> dict[str, str]:
        """Return the note as JSON shows it."""
        return {"field": self.field, "note": self.text}


@dataclass(slots=True)
class Notes:
    """Notes in order of their addition, without duplicates."""

    notes: dict[TranslationNote, None] = field(default_factory=dict)

    def add(self, where: str, text: str) -> None:
        self.notes.setdefault(TranslationNote(where, text))

    def drop_addresses(self, document: Mapping[str, object]) -> None:
        """Add a note for each of `ADDRESSES` that a document sets."""
        for name in ADDRESSES:
            if document.get(name) is not None:
                self.add(name, "dropped: v1 has no such field, and Roadstead serves nothing there")

    def all(self) -> tuple[TranslationNote, ...]:
        return tuple(self.notes)
