"""Pods that need what a run on actors does not have yet: refused before it starts, or left out."""

from __future__ import annotations

from dataclasses import replace

from roadstead.facts.pod import Pod
from roadstead.inputs.loaded import Loaded
from roadstead.plugins.dynamic_resources import DynamicResources
from roadstead.protocol.errors import UnsupportedError
from roadstead.run import RunPlan

PODS_SHOWN = 3


def supported(loaded: Loaded, plan: RunPlan, *, skips: bool) -> Loaded:
    """Return the inputs without pending pods that need a missing plugin, with a note.

    skips: leave such pods out. Otherwise raises UnsupportedError for the first one.
    """
    name = DynamicResources.name
    missing = {
        each.scheduler_name
        for each in plan.config().profiles
        if any(name == ref.name for ref in each.at("preFilter"))
    }
    left_out: list[Pod] = []
    # Facts are shared by the pods of a class.
    known: dict[int, tuple[str, str]] = {}
    for pod in loaded.inputs.pending:
        identity, facts = pod
        if id(facts) not in known:
            is_missing = bool(facts.device_claims) and facts.scheduler_name in missing
            known[id(facts)] = (name, "spec.resourceClaims") if is_missing else ("", "")
        plugin_name, field = known[id(facts)]
        if plugin_name and not skips:
            raise UnsupportedError(plugin_name, f'Pod "{identity.key}"', field)
        if plugin_name:
            left_out.append(pod)
    return _without(loaded, left_out) if left_out else loaded


def _without(loaded: Loaded, left_out: list[Pod]) -> Loaded:
    gone = {identity.uid for identity, _ in left_out}
    kept = tuple(each for each in loaded.inputs.pending if each[0].uid not in gone)
    some = ", ".join(identity.key for identity, _ in left_out[:PODS_SHOWN])
    more = ", …" if len(left_out) > PODS_SHOWN else ""
    count = f"{len(left_out):,} pod{'s' * (len(left_out) > 1)}"
    note = f"Left out, for lack of a plugin in this version: {count} ({some}{more})."
    inputs = replace(loaded.inputs, pending=kept)
    return replace(loaded, inputs=inputs, notes=(*loaded.notes, note))
