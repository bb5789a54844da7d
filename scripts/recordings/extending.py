"""Replaying recorded attempts with extenders: every HTTP call and its result.

A substitute replaces the sockets: it answers each request as recorded, in their order, and stores
the requests.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from roadstead.cycle.batch import Decision, PodInCycle
from roadstead.cycle.explain import Explanation, post_filter_fields
from roadstead.cycle.node_search import NodeSearch
from roadstead.extenders.caller import ExtenderError, TransportError
from roadstead.extenders.extender import Extender
from roadstead.extenders.http import HttpCaller
from roadstead.extenders.sequence import EXTENDER, Extenders
from roadstead.facts.pod import PodIdentity
from roadstead.protocol.status import Status
from scripts.recordings.cases import Case
from scripts.recordings.replay import failed, fleet_of
from scripts.recordings.result import Json, RecordingResult, differing, listed

EXTENDERS = "extenders"
SCHEDULER = "scheduler"
_CLOSED = "EOF"


@dataclass(slots=True)
class Script:
    """The recorded calls of one pod, and those that were made."""

    recorded: Sequence[Json] = ()
    made: list[Json] = field(default_factory=list)

    def begin(self, recorded: Sequence[Json]) -> None:
        """Start a new attempt with these recorded calls."""
        self.recorded, self.made = recorded, []

    def answer(self, extender: int, url: str, verb: str, body: bytes) -> tuple[int, bytes]:
        """Return the recorded answer to the next call; TransportError if it has none."""
        call: Json = {"extender": extender, "url": url, "verb": verb}
        place = len(self.made)
        self.made.append(call | {"request": _shortened(json.loads(body))})
        if place >= len(self.recorded):
            raise TransportError("a call that was not recorded")
        recorded = self.recorded[place]
        if recorded.get("closed"):
            raise TransportError(_CLOSED)
        text = recorded.get("responseText", json.dumps(_lengthened(recorded.get("response"))))
        status = recorded["status"]
        assert isinstance(text, str)
        assert isinstance(status, int)
        return status, text.encode()


@dataclass(frozen=True, slots=True)
class RecordedTransport:
    """The transport of one extender in a recording."""

    script: Script
    extender: int
    url: str

    def post(self, verb: str, body: bytes) -> tuple[int, bytes]:
        """As `Transport.post`."""
        return self.script.answer(self.extender, f"{self.url}/{verb}", verb, body)


class ExtendedReplay:
    """A recording with extenders on one path: every pod on the same snapshot."""

    def __init__(self, case: Case, path_name: str) -> None:
        self._case = case
        self._script = Script()
        configs = case.config.extenders
        self._each = [
            Extender(config, HttpCaller(config, RecordedTransport(self._script, i, url)))
            for i, config in enumerate(configs)
            for url in [config.url_prefix.rstrip("/")]
        ]
        # In upstream's order: ignorable extenders last.
        self._built = sorted(self._each, key=lambda each: each.is_ignorable)
        self._extenders = Extenders(self._each)
        self.path = fleet_of(case, path_name, NodeSearch(extenders=self._extenders))

    def run(self) -> RecordingResult:
        """Decide and explain every recorded attempt."""
        expected = self._case.document["expected"]
        assert isinstance(expected, list)
        result = RecordingResult(decisions=len(expected))
        for (identity, facts), entry in zip(self._case.pending, expected, strict=True):
            pod = self.path.prepare(identity, facts)
            where = f"{self._case.path.name} {identity.key}"
            try:
                ours, found = self._one(identity, pod, entry)
            except Exception as failure:
                ours, found = {"pod": pod.key}, [failed(failure)]
            result.compare(where, "expected", ours, found)
        return result

    def _one(self, identity: PodIdentity, pod: PodInCycle, entry: Json) -> tuple[Json, list[str]]:
        calls = listed(entry["calls"])
        self._script.begin(calls)
        decision = self.path.decide([pod])[0]
        interested = [i for i, e in enumerate(self._built) if e.is_interested(pod.pod_class.facts)]
        ours: Json = {"pod": pod.key} | self._outcome(decision, entry)
        if interested:
            ours["interested"] = interested
        if decision.node_name is not None:
            ours |= self._bound(identity, pod, decision.node_name)
            self.path.forget(pod, decision.node_name)
        ours["calls"] = self._made()
        before_bind = [call for call in calls if call["kind"] != "bind"]
        self._script.begin(before_bind)
        explanation = self.path.explain(pod)
        ours |= _explained(explanation, entry)
        theirs = self._named(_joined(entry)) | {"calls": [_compared_fields(call) for call in calls]}
        found = differing(ours, theirs)
        if self._made() != [_compared_fields(call) for call in before_bind]:
            found.append(f"explain: calls: {self._made()}")
        return ours, found

    def _named(self, entry: Json) -> Json:
        """Remove the best nodes from an entry if this path does not name them."""
        return {k: v for k, v in entry.items() if k != "best" or self.path.names_best}

    def _made(self) -> list[Json]:
        """Return the calls that were made, in order."""
        return list(self._script.made)

    def _outcome(self, decision: Decision, entry: Json) -> Json:
        if decision.error:
            return {"error": decision.error}
        if decision.node_name is None:
            assert decision.diagnosis is not None, "no node and no reason"
            answer = decision.post_filter
            suffix = "" if answer is None or answer.status.is_success else answer.status.message
            fields: Json = {"message": decision.diagnosis.message(suffix)}
            if answer is None:
                return fields
            nominated = post_filter_fields(answer)
            kept = {k: v for k, v in nominated.items() if k in _mapping(entry.get("postFilter"))}
            return fields | {"postFilter": kept}
        fields = {"chosen": decision.node_name}
        if decision.feasible > 1:
            fields["bestTotal"] = decision.total
            if self.path.names_best:
                fields["best"] = list(decision.best)
        return fields

    def _bound(self, identity: PodIdentity, pod: PodInCycle, node_name: str) -> Json:
        """Bind the pod as a scheduler does; return which extender did it, or the scheduler."""
        before = len(self._script.made)
        try:
            is_bound = self._extenders.bind(identity, pod.pod_class.facts, node_name)
        except ExtenderError as failure:
            return {"binder": self._last_called(), "bindError": str(failure)}
        is_bound = is_bound and len(self._script.made) > before
        return {"binder": self._last_called() if is_bound else SCHEDULER}

    def _last_called(self) -> int:
        """Return the index of the extender that was called last."""
        last = self._script.made[-1]["extender"]
        assert isinstance(last, int)
        return self._built.index(self._each[last])


def _explained(explanation: Explanation, entry: Json) -> Json:
    """Return the recorded fields of nodes: totals of several, or statuses if none is feasible."""
    if "error" in entry:
        return {}
    if "message" in entry:
        recorded = _mapping(entry["nodeStatuses"])
        statuses = zip(explanation.names, explanation.statuses, strict=True)
        return {
            "nodeStatuses": {
                name: _status(status) for name, status in statuses if status and name in recorded
            }
        }
    feasible = [explanation.names[row] for row in explanation.feasible]
    fields: Json = {"feasible": [name for name in listed(entry["feasible"]) if name in feasible]}
    if len(feasible) == 1:
        return fields
    own = [line for line in explanation.scores if line.plugin != EXTENDER]
    sums = [
        sum(line.weight * int(line.normalized[i]) for line in own if line.normalized is not None)
        for i in range(len(feasible))
    ]
    total = dict(zip(feasible, explanation.total.tolist(), strict=True))
    return fields | {"pluginTotal": dict(zip(feasible, sums, strict=True)), "total": total}


def _status(status: Status) -> Json:
    """Return a status as recorded: upstream gives those of extenders no plugin's name."""
    fields: Json = {"code": status.code.upstream_name, "reasons": sorted(status.reasons)}
    if status.plugin and status.plugin != EXTENDER:
        fields["plugin"] = status.plugin
    return fields


def _joined(entry: Json) -> Json:
    """Join the reasons of PostFilter's plugins into one, as in other suites."""
    answer = _mapping(entry.get("postFilter"))
    status = _mapping(answer.get("status"))
    if "reasons" not in status:
        return entry
    reasons = [", ".join(map(str, listed(status["reasons"])))]
    return entry | {"postFilter": {**answer, "status": {**status, "reasons": reasons}}}


def _lengthened(response: object) -> object:
    """Return a response as it was sent; in the recording, nodes are replaced by their names."""
    if not isinstance(response, dict) or not isinstance(response.get("Nodes"), dict):
        return response
    items = [{"metadata": {"name": name}} for name in listed(response["Nodes"]["items"] or [])]
    return response | {"Nodes": {"items": items}}


def _compared_fields(call: Json) -> Json:
    return {key: call[key] for key in ("extender", "url", "verb", "request")}


def _shortened(payload: Json) -> Json:
    """Return a request as it is recorded: pods as their keys, nodes as their names."""
    short = dict(payload)
    if "Pod" in short:
        short["Pod"] = _key(_mapping(short["Pod"]))
    if isinstance(nodes := short.get("Nodes"), dict):
        short["Nodes"] = {"items": [each["metadata"]["name"] for each in nodes["items"]]}
    if isinstance(victims := short.get("NodeNameToVictims"), dict):
        short["NodeNameToVictims"] = {
            name: {**each, "Pods": [_key(pod) for pod in each["Pods"]]}
            for name, each in victims.items()
        }
    return short


def _key(pod: Mapping[str, object]) -> str:
    metadata = _mapping(pod["metadata"])
    return f"{metadata['namespace']}/{metadata['name']}"


def _mapping(value: object) -> Mapping[str, object]:
    assert value is None or isinstance(value, Mapping)
    return value or {}
