"""Calls of queueing hints, as the queue makes them."""

from roadstead.facts.cluster import ClusterFacts
from roadstead.framework.events import EventPod, ObjectChange

NOTHING = ClusterFacts()


def on_node(facts):
    return EventPod(facts, True)


def waiting(facts):
    return EventPod(facts, False)


def asked(hint, pod, *, old=None, new=None, own=False, cluster=NOTHING):
    """Return the hint's answer, "Queue" or "QueueSkip"."""
    return hint(pod, ObjectChange(old, new, of_waiting_pod=own), cluster).value


def labels_of(plugin):
    """Return the label of each event that a plugin registers, with "?" if it has a hint."""
    return {_label(each) for each in plugin.events_to_register()}


def _label(registered):
    actions = "+".join(action.label for action in registered.event.action)
    return f"{registered.event.resource}{actions}{'?' if registered.hint else ''}"
