"""Lists of pods in messages: columns of their names, and a table of their classes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from roadstead.facts.pod import PodFacts, PodIdentity, without_nomination
from roadstead.facts.wire import decode_facts, encode_facts


@dataclass(frozen=True, slots=True)
class PodList:
    """Pods as columns: `class_of[i]` is the index of pod i's class in `classes`.

    classes: encoded facts (`roadstead.facts.wire`). started_s: (index, start time) of the pods that
    have one. revision: number that the sender gives its message, by which the receiver recognizes a
    late copy (`roadstead.revisions`); 0 for none.
    """

    classes: tuple[bytes, ...]
    uids: tuple[str, ...]
    names: tuple[str, ...]
    class_of: tuple[int, ...]
    started_s: tuple[tuple[int, float], ...] = ()
    revision: int = 0

    def starts(self) -> dict[str, float]:
        """Return start times by UID, for the pods that have one."""
        return {self.uids[index]: time_s for index, time_s in self.started_s}

    def keyed(self) -> Iterator[tuple[str, str, PodFacts]]:
        """Yield each pod's UID, key (namespace/name) and facts; faster than `pods`."""
        classes = [(facts, f"{facts.namespace}/") for facts in map(decode_facts, self.classes)]
        for uid, name, index in zip(self.uids, self.names, self.class_of, strict=True):
            facts, prefix = classes[index]
            key = prefix + name
            # The UID itself if both are equal, as `pod_key`, which would be a call for each pod.
            yield uid, uid if key == uid else key, facts

    def pods(self) -> Iterator[tuple[PodIdentity, PodFacts]]:
        """Yield each pod's identity and facts; pods of one class share one facts object.

        The identities have no start times; `starts` has them.
        """
        classes = [decode_facts(data) for data in self.classes]
        for uid, name, index in zip(self.uids, self.names, self.class_of, strict=True):
            facts = classes[index]
            yield PodIdentity(uid, facts.namespace, name), facts

    def split(self, classes_max: int) -> Iterator[PodList]:
        """Yield the pods in order, in lists with at most `classes_max` classes."""
        if len(self.classes) <= classes_max:
            yield self
            return
        start, index_of = 0, dict[int, int]()
        for end, index in enumerate(self.class_of):
            if len(index_of) == classes_max and index not in index_of:
                yield self._slice(start, end, index_of)
                start, index_of = end, {}
            index_of.setdefault(index, len(index_of))
        yield self._slice(start, len(self.class_of), index_of)

    def _slice(self, start: int, end: int, index_of: Mapping[int, int]) -> PodList:
        """Return some consecutive pods. index_of: new index of each of their classes, in order."""
        return PodList(
            tuple([self.classes[index] for index in index_of]),
            self.uids[start:end],
            self.names[start:end],
            tuple([index_of[index] for index in self.class_of[start:end]]),
            tuple([(i - start, time_s) for i, time_s in self.started_s if start <= i < end]),
            self.revision,
        )


def pod_list(pods: Iterable[tuple[PodIdentity, PodFacts]], revision: int = 0) -> PodList:
    """Return pods as columns, in order."""
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
    return PodList(*columns, tuple(started_s), revision)


def pod_list_of_columns(
    uids: Sequence[str], keys: Sequence[str], facts: Sequence[PodFacts]
) -> PodList:
    """Return pods on nodes, by their keys (namespace/name), as columns.

    Their nominated nodes are dropped, so that equal pods on nodes have one class.
    """
    # By the id of each facts object: the index of its class, and where names begin in keys.
    classes, known = ClassColumn(), {}
    for facts_id, each in {id(each): each for each in facts}.items():
        classes.add(without_nomination(each))
        known[facts_id] = classes.column[-1], len(each.namespace) + 1
    found = [known[id(each)] for each in facts]
    names = tuple([key[start:] for key, (_, start) in zip(keys, found, strict=True)])
    return PodList(classes.table, tuple(uids), names, tuple([index for index, _ in found]))


class ClassColumn:
    """Builder of a table of classes and of the column of indices into it, one for each pod."""

    __slots__ = ("_by_id", "_index_of", "_kept", "column")

    def __init__(self) -> None:
        self.column: list[int] = []
        self._by_id: dict[int, int] = {}
        self._kept: list[PodFacts] = []
        # By encoded facts, which is the table.
        self._index_of: dict[bytes, int] = {}

    def add(self, facts: PodFacts) -> None:
        """Append the class of one more pod."""
        index = self._by_id.get(id(facts))
        if index is None:
            index = self._index_of.setdefault(encode_facts(facts), len(self._index_of))
            self._by_id[id(facts)] = index
            # Keep the object alive: otherwise an object of another class may get its id.
            self._kept.append(facts)
        self.column.append(index)

    @property
    def table(self) -> tuple[bytes, ...]:
        return tuple(self._index_of)


NO_PODS = PodList((), (), (), ())
