"""Runs in this process whose pods have claims of devices, for tests."""

from roadstead.facts.pod import PodIdentity
from roadstead.local.run import LocalRun
from roadstead.run import RunPlan


def begun(settings, facts, nodes, journal=None):
    """Return a run of a cluster, with its nodes."""
    plan = RunPlan(settings, cluster=facts)
    found = LocalRun(plan, journal)
    found.plan = plan
    found.add_nodes(nodes)
    return found


def submit(run, **pods):
    """Submit pods by name, and decide them."""
    run.submit([(PodIdentity(name, "default", name), facts) for name, facts in pods.items()])
    run.run(run.now_s)


def committed_claims(run):
    """Return the claims of the cache; what the binder committed must lead to the same."""
    cache = run.state.volumes.assumed_claims
    cache.validate()
    committed = run.plan.storage_state()
    for change in run.binder.volumes.log:
        committed.apply(change)
    committed.validate()
    assert cache.storage.devices.claims == committed.devices.claims
    return committed.devices.claims


def messages(run):
    """Return the message of each pending pod."""
    return {note.key: note.message for note in run.pending()}
