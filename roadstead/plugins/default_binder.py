"""DefaultBinder: every pod is bound by the binder, the actor that writes the journal.

Upstream: pkg/scheduler/framework/plugins/defaultbinder/default_binder.go.
"""

from __future__ import annotations

from roadstead.facts.pod import PodFacts, PodIdentity
from roadstead.framework.plugin import BindPlugin, Reads, only_succeeds
from roadstead.protocol.status import SUCCESS, Status


class DefaultBinder(BindPlugin):
    name = "DefaultBinder"
    reads = Reads.NODE

    @only_succeeds
    def bind(self, pod: PodIdentity, facts: PodFacts, node_name: str) -> Status:
        return SUCCESS

    def sign(self, pod: PodFacts) -> tuple[()]:
        """Empty: binding reads no facts of the pod."""
        return ()
