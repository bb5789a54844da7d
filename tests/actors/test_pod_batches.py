"""Batches of pods in messages: the facts of each pod, whatever created them."""

from roadstead.actors.messages import pod_batch
from roadstead.facts.pod import PodFacts, PodIdentity

NAMESPACES = ("red", "red", "red", "blue", "blue", "red")


def test_each_pod_keeps_its_facts_when_temporary_objects_reuse_an_id():
    """A new object may have the memory address, and so the id, of a freed one."""
    pods = [PodIdentity(f"u{n}", namespace, f"p{n}") for n, namespace in enumerate(NAMESPACES)]

    batch = pod_batch((who, PodFacts(who.namespace)) for who in pods)

    assert [facts.namespace for _, facts in batch.pods()] == list(NAMESPACES)
    assert len(batch.classes) == 2
