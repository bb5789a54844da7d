"""The pods that a scenario itself creates, as commands: its initial pods and its arrivals."""

from __future__ import annotations

from roadstead.simulator.component import CreatePods, NewPod
from roadstead.simulator.scenario import Arrival, InitialPod


def initial_pod(pod: InitialPod) -> NewPod:
    """Return the creation of a pod that exists at the start; it runs until it is deleted."""
    identity, lifecycle = pod.identity, pod.lifecycle
    return NewPod(
        identity.namespace,
        identity.name,
        pod.facts,
        grace_us=lifecycle.grace_us,
        no_execute=lifecycle.no_execute,
        uid=identity.uid,
    )


def arriving_pods(arrival: Arrival) -> CreatePods:
    """Return the creation of the pods of an arrival."""
    grace_us, no_execute = arrival.lifecycle.grace_us, arrival.lifecycle.no_execute
    pods = tuple(
        NewPod(facts.namespace, name, facts, arrival.duration_us, grace_us, no_execute=no_execute)
        for name, facts in arrival.pods
    )
    return CreatePods(pods, arrival.source)
