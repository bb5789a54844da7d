"""Pods that need what a run on actors does not have yet: refused before it starts, or left out."""

from __future__ import annotations

from dataclasses import replace

from roadstead.devices.gates import DeviceGates
from roadstead.facts.pod import Pod, PodFacts
from roadstead.inputs.loaded import Loaded
from roadstead.plugins.dynamic_resources import DynamicResources, extended_by_classes
from roadstead.protocol.errors import UnsupportedError
from roadstead.run import RunPlan

PODS_SHOWN = 3


def supported(loaded: Loaded, plan: RunPlan, *, skips: bool) -> Loaded:
    """Return the inputs without pending pods that need what is missing, with a note.

    skips: leave such pods out. Otherwise raises UnsupportedError for the first one.
    """
    name, gates = DynamicResources.name, plan.gates()
    profiles = {
        each.scheduler_name
        for each in plan.config().profiles
        if any(name == ref.name for ref in each.at("preFilter"))
    }
    left_out: list[Pod] = []
    # Facts are shared by the pods of a class.
    known: dict[int, str] = {}
    for pod in loaded.inputs.pending:
        identity, facts = pod
        if id(facts) not in known:
            is_read = facts.scheduler_name in profiles
            known[id(facts)] = missing_field(facts, gates) if is_read else ""
        field = known[id(facts)]
        if field and not skips:
            raise UnsupportedError(name, f'Pod "{identity.key}"', field)
        if field:
            left_out.append(pod)
    return _without(loaded, left_out) if left_out else loaded


def missing_field(facts: PodFacts, gates: DeviceGates) -> str:
    """Return the field of a pod, with its gate, that no run can decide on; "" for none."""
    if facts.device_claims and gates.binding_conditions:
        return "spec.resourceClaims with DRADeviceBindingConditions"
    name = extended_by_classes(facts) if gates.extended_resource else ""
    return f"spec.containers: {name} with DRAExtendedResource" if name else ""


def _without(loaded: Loaded, left_out: list[Pod]) -> Loaded:
    gone = {identity.uid for identity, _ in left_out}
    kept = tuple(each for each in loaded.inputs.pending if each[0].uid not in gone)
    some = ", ".join(identity.key for identity, _ in left_out[:PODS_SHOWN])
    more = ", …" if len(left_out) > PODS_SHOWN else ""
    count = f"{len(left_out):,} pod{'s' * (len(left_out) > 1)}"
    note = f"Left out, for lack of a plugin in this version: {count} ({some}{more})."
    inputs = replace(loaded.inputs, pending=kept)
    return replace(loaded, inputs=inputs, notes=(*loaded.notes, note))
