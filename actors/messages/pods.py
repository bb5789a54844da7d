"""Pods as they travel: columns beside a table of their classes; never one message per pod."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from roadstead.facts.pod import PodFacts, PodIdentity, unnominated
from roadstead.facts.wire import facts_in, facts_out


@dataclass(frozen=True, slots=True)
class PodBatch:
    """Pods as columns: `class_of[i]` points into `classes` (see `roadstead.facts.wire`).

    started_s: (place, start time) of the pods that have one. revision: see `roadstead.revisions`.
    """

    classes: tuple[bytes, ...]
    uids: tuple[str, ...]
    names: tuple[str, ...]
    class_of: tuple[int, ...]
    started_s: tuple[tuple[int, float], ...] = ()
    revision: int = 0

    def starts(self) -> dict[str, float]:
        """Start times by UID, of the pods that have one."""
        return {self.uids[place]: time_s for place, time_s in self.started_s}

    def keyed(self) -> Iterator[tuple[str, str, PodFacts]]:
        """Each pod's UID, key (namespace/name) and facts; as `pods`, and cheaper."""
        classes = [(facts, f"{facts.namespace}/") for facts in map(facts_in, self.classes)]
        for uid, name, index in zip(self.uids, self.names, self.class_of, strict=True):
            facts, prefix = classes[index]
            key = prefix + name
            # As `pod_key` has it.
            yield uid, uid if key == uid else key, facts

    def pods(self) -> Iterator[tuple[PodIdentity, PodFacts]]:
        """Each pod's identity and facts; pods of one class share one facts object."""
        classes = [facts_in(data) for data in self.classes]
        for uid, name, index in zip(self.uids, self.names, self.class_of, strict=True):
            facts = classes[index]
            yield PodIdentity(uid, facts.namespace, name), facts


def pod_batch(pods: Iterable[tuple[PodIdentity, PodFacts]], revision: int = 0) -> PodBatch:
    """Columns of pods, in order."""
    classes = ClassColumn()
    uids: list[str] = []
    names, started_s = [], []
    for identity, facts in pods:
        if identity.started_s is not None:
            started_s.append((len(uids), identity.started_s))
        uids.append(identity.uid)
        names.append(identity.name)
        classes.add(facts)
    columns = classes.table, tuple(uids), tuple(names), tuple(classes.column)
    return PodBatch(*columns, tuple(started_s), revision)


def pod_columns(uids: Sequence[str], keys: Sequence[str], facts: Sequence[PodFacts]) -> PodBatch:
    """Columns of pods that are known by their keys (namespace/name); nominated to no node."""
    classes, places = ClassColumn(), {}
    for known, each in {id(each): each for each in facts}.items():
        classes.add(unnominated(each))
        places[known] = classes.column[-1], len(each.namespace) + 1
    found = [places[id(each)] for each in facts]
    names = tuple([key[start:] for key, (_, start) in zip(keys, found, strict=True)])
    return PodBatch(classes.table, tuple(uids), names, tuple([place for place, _ in found]))


class ClassColumn:
    """Builds a class table and the column of places in it; equal objects are looked up by id."""

    __slots__ = ("_by_id", "_index_of", "_kept", "column")

    def __init__(self) -> None:
        self.column: list[int] = []
        self._by_id: dict[int, int] = {}
        self._kept: list[PodFacts] = []
        self._index_of: dict[PodFacts, int] = {}

    def add(self, facts: PodFacts) -> None:
        index = self._by_id.get(id(facts))
        if index is None:
            index = self._index_of.setdefault(facts, len(self._index_of))
            self._by_id[id(facts)] = index
            # An object that is freed leaves its id to others, of other classes.
            self._kept.append(facts)
        self.column.append(index)

    @property
    def table(self) -> tuple[bytes, ...]:
        return tuple(facts_out(facts) for facts in self._index_of)


NO_PODS = PodBatch((), (), (), ())
