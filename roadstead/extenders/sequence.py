"""All extenders of a configuration, called in turn: filter, prioritize, preempt, bind.

Upstream: pkg/scheduler/schedule_one.go (findNodesThatPassExtenders, prioritizeNodes,
extendersBinding) and framework/preemption/preemption.go (callExtenders).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from roadstead.config.model import ExtenderConfig
from roadstead.extenders.caller import CallerOf, ExtenderError, InProcessExtenders
from roadstead.extenders.extender import Extender, ExtenderPod, Victims
from roadstead.extenders.replies import MetaVictims
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts, PodIdentity
from roadstead.protocol.errors import InputError
from roadstead.protocol.status import Code, Status

EXTENDER = "Extender"
"""The plugin name in the statuses of extenders (upstream framework.ExtenderName)."""

_LOG = logging.getLogger("roadstead.extenders")


@dataclass(slots=True)
class ExtenderResult:
    """The nodes that passed the extenders.

    refused: node → status, for any name in a reply, even one that is no node's. is_bare: an
    extender answered with Node objects; like upstream, these are scored as if they had no pods and
    no images.
    """

    nodes: list[NodeFacts]
    refused: dict[str, Status] = field(default_factory=dict)
    is_bare: bool = False


class Extenders:
    """The extenders of a configuration, in its order, ignorable ones after all others.

    Upstream: pkg/scheduler/scheduler.go (buildExtenders).
    """

    def __init__(
        self, extenders: Sequence[Extender] = (), in_process: InProcessExtenders | None = None
    ) -> None:
        """in_process: the factory of their callers if they answer in this process, else None."""
        self.in_process = in_process
        self._all = tuple(sorted(extenders, key=lambda each: each.is_ignorable))

    @staticmethod
    def build(configs: Sequence[ExtenderConfig], caller_of: CallerOf) -> Extenders:
        """Build all extenders; InputError for a caller without a readable certificate."""
        in_process = caller_of if isinstance(caller_of, InProcessExtenders) else None
        extenders: list[Extender] = []
        for index, config in enumerate(configs):
            try:
                extenders.append(Extender(config, caller_of(config)))
            except InputError as bad:
                raise bad.at(field=f"extenders[{index}]") from bad
        return Extenders(extenders, in_process)

    def __len__(self) -> int:
        return len(self._all)

    @property
    def any_filters(self) -> bool:
        return any(each.is_filter for each in self._all)

    @property
    def any_prioritizers(self) -> bool:
        return any(each.is_prioritizer for each in self._all)

    @property
    def wants_manifests(self) -> bool:
        """Whether requests to any filter or prioritizer contain Node objects instead of names."""
        return any(
            each.wants_manifests and (each.is_filter or each.is_prioritizer) for each in self._all
        )

    def handles(self, facts: PodFacts) -> bool:
        """Whether any extender filters or prioritizes nodes for a pod."""
        return any(
            (each.is_filter or each.is_prioritizer) and each.is_interested(facts)
            for each in self._all
        )

    def filter(self, pod: ExtenderPod, nodes: Sequence[NodeFacts]) -> ExtenderResult:
        """Return the nodes that pass all; ExtenderError if one fails that is not ignorable."""
        passed = ExtenderResult(list(nodes))
        for extender in self._interested(pod.facts):
            # As upstream (findNodesThatPassExtenders): an extender gets the nodes that the one
            # before left, and none is called without nodes.
            if not passed.nodes:
                break
            try:
                reply = extender.filter(pod, passed.nodes)
            except ExtenderError as failure:
                _log(extender, "filter", failure)
                if not extender.is_ignorable:
                    raise
                continue
            for name, why in reply.failed.items():
                passed.refused[name] = Status(Code.UNSCHEDULABLE, (why,), EXTENDER)
            # Written last: a node that an extender names in both maps is unresolvable, as
            # upstream.
            for name, why in reply.unresolvable.items():
                code = Code.UNSCHEDULABLE_AND_UNRESOLVABLE
                passed.refused[name] = Status(code, (why,), EXTENDER)
            by_name = {node.name: node for node in passed.nodes}
            passed.is_bare |= reply.is_bare
            passed.nodes = [by_name[name] for name in reply.names or ()]
        return passed

    def prioritize(self, pod: ExtenderPod, nodes: Sequence[NodeFacts]) -> dict[str, int]:
        """Return the sums of weighted scores by node, without those of extenders that fail."""
        totals: dict[str, int] = {}
        for extender in self._interested(pod.facts):
            try:
                scores = extender.prioritize(pod, nodes)
            except ExtenderError as failure:
                _log(extender, "prioritize", failure)
                continue
            for name, score in scores.items():
                totals[name] = totals.get(name, 0) + score
        return totals

    def preempts(self, facts: PodFacts) -> bool:
        """Whether any extender processes the preemption candidates of a pod."""
        return any(each.supports_preemption and each.is_interested(facts) for each in self._all)

    def process_preemption(
        self, pod: ExtenderPod, candidates: Mapping[str, Victims]
    ) -> dict[str, Victims]:
        """Return the candidates that remain after all extenders: node → victims.

        An extender may name only nodes and victims of `candidates`. ExtenderError if one fails
        that is not ignorable, or if it returns a node without victims.
        """
        remaining = dict(candidates)
        for extender in self._interested(pod.facts):
            if not remaining:
                break
            if not extender.supports_preemption:
                continue
            try:
                answer = extender.process_preemption(pod, remaining)
                found = {
                    name: _victims(extender, name, victims, candidates)
                    for name, victims in answer.items()
                }
                remaining = _with_victims(extender, found)
            except ExtenderError as failure:
                _log(extender, "preempt", failure)
                if not extender.is_ignorable:
                    raise
        return remaining

    def has_binder_for(self, facts: PodFacts) -> bool:
        """Whether an extender binds the pod in place of the profile's bind plugins."""
        return any(each.is_binder and each.is_interested(facts) for each in self._all)

    def bind(self, identity: PodIdentity, facts: PodFacts, node_name: str) -> bool:
        """Let the first interested binder bind the pod; False if none did.

        ExtenderError if one fails that is not ignorable.
        """
        for extender in self._interested(facts):
            if not extender.is_binder:
                continue
            try:
                extender.bind(identity, node_name)
            except ExtenderError as failure:
                _log(extender, "bind", failure)
                if not extender.is_ignorable:
                    raise
                continue
            return True
        return False

    def _interested(self, facts: PodFacts) -> list[Extender]:
        return [each for each in self._all if each.is_interested(facts)]


def _victims(
    extender: Extender,
    name: str,
    meta: MetaVictims,
    candidates: Mapping[str, Victims],
) -> Victims:
    """Return the victims that an extender named by UID; ExtenderError for unknown ones."""
    if name not in candidates:
        raise ExtenderError(f'nodeinfo not found for node name "{name}"')
    by_uid = {each.identity.uid: each for each in candidates[name].pods}
    pods = []
    # A victim that is listed twice can be evicted only once.
    for uid in dict.fromkeys(meta.uids):
        found = by_uid.get(uid)
        if found is None:
            raise ExtenderError(
                f"extender: {extender.url} claims to preempt pod (UID: {uid}) on node: {name}, "
                "but the pod is not found on that node"
            )
        pods.append(found)
    return Victims(tuple(pods), meta.pdb_violations)


def _with_victims(extender: Extender, victims_of: Mapping[str, Victims]) -> dict[str, Victims]:
    """Leave out nodes without victims; ExtenderError for one if the extender is not ignorable."""
    for name, victims in victims_of.items():
        if not victims.pods and not extender.is_ignorable:
            raise ExtenderError(f'expected at least one victim pod on node "{name}"')
    return {name: victims for name, victims in victims_of.items() if victims.pods}


def _log(extender: Extender, verb: str, failure: ExtenderError) -> None:
    """Log a failure with the extender's URL, which upstream's texts do not always contain."""
    what = "skipped" if extender.is_ignorable or verb == "prioritize" else "failed"
    _LOG.info("extender %s %s at %s: %s", extender.url, what, verb, failure)
