"""Asking queueing hints as the queue does."""

from roadstead.facts.cluster import ClusterFacts
from roadstead.framework.events import EventPod, ObjectChange

NOTHING = ClusterFacts()


def on_node(facts):
    return EventPod(facts, True)


def waiting(facts):
    return EventPod(facts, False)


def asked(hint, pod, *, old=None, new=None, own=False, cluster=NOTHING):
    """The hint's word, "Queue" or "QueueSkip"."""
    return hint(pod, ObjectChange(old, new, own=own), cluster).value


def labels_of(plugin):
    """What a plugin registers: the label of each event, with "?" where a hint is asked."""
    return {_label(each) for each in plugin.events_to_register()}


def _label(registered):
    actions = "+".join(action.label for action in registered.event.action)
    return f"{registered.event.resource}{actions}{'?' if registered.hint else ''}"
