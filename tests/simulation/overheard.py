"""Messages of an actor: references that record its calls, and batches of changes split into single
ones.
"""

from roadstead.actors.messages import STORAGE, VERSION
from roadstead.facts.wire import decode_facts
from roadstead.placements import DeltaKind


class Overheard:
    """A directory whose references record calls, see `OverheardRef`."""

    def __init__(self, directory, asked):
        self._directory, self._asked = directory, asked

    def find(self, name, *stamp):
        # Without a stamp the directory adds the actor's own stamp to each message.
        return OverheardRef(self._directory.find(name, *stamp), self._asked)


class OverheardRef:
    """asked: called with each request as it is sent; returns a callback for its answer, or None."""

    def __init__(self, ref, asked):
        self._ref, self._asked, self.name = ref, asked, ref.name

    def call(self, method, message, *, timeout_s):
        answered = self._asked(self.name, method, message)
        return self._call(method, message, timeout_s, answered)

    async def _call(self, method, message, timeout_s, answered):
        answer = await self._ref.call(method, message, timeout_s=timeout_s)
        if answered is not None:
            answered(answer)
        return answer


def rows_of(batch):
    """Return each change of a batch as (kind, node, uid, facts, key, start, node's facts, arrival,
    claim change, version); absent values are "", -1 or None.
    """
    nodes, changes = iter(zip(batch.nodes, batch.arrivals, strict=True)), iter(batch.changes)
    versions, started_s = iter(batch.versions), dict(batch.started_s)
    uids, keys = batch.uids or ("",) * len(batch.kinds), batch.keys or ("",) * len(batch.kinds)
    rows = zip(batch.kinds, batch.names, batch.pods, uids, keys, strict=True)
    for place, (kind, name, pod, uid, key) in enumerate(rows):
        has_node = kind in (DeltaKind.ADD_NODE, DeltaKind.UPDATE_NODE)
        node, arrival = next(nodes) if has_node else (None, -1)
        change = next(changes) if kind == STORAGE else None
        version = next(versions) if kind == VERSION else -1
        facts = decode_facts(batch.classes[pod]) if pod != -1 else None
        yield (
            *(kind, name, uid, facts, key, started_s.get(place)),
            *(node, arrival, change, version),
        )


def change_row(change):
    return STORAGE, "", "", None, "", None, None, -1, change, -1
