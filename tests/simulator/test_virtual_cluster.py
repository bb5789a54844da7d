"""VirtualCluster decides like a run with queue, cache and binder, on every path of a pod."""

from dataclasses import replace

import pytest

from roadstead.config.settings import Settings
from roadstead.cycle.batch import CompiledKernel
from roadstead.kernel.compiled_code import load
from roadstead.kernel.decision_counts import DecisionCounts
from roadstead.local.run import LocalRun
from roadstead.run import RunPlan
from roadstead.simulator.virtual_cluster import VirtualCluster
from tests.simulation.scenarios import make


def kernel():
    return CompiledKernel(load(), DecisionCounts())


def virtual_of(*nodes, plan=None):
    cluster = VirtualCluster(plan or RunPlan(Settings()), kernel())
    cluster.add_nodes(nodes)
    return cluster


class Reference:
    """A run with a binder that checks, and with the tables of binder and cache."""

    def __init__(self, plan):
        self.run = LocalRun(plan, compiled_kernel=kernel())

    def arrive(self, pod, now_s):
        self.run.now_s = now_s
        self.run.submit([pod])
        self.run.run(now_s)

    def remove(self, pods, now_s):
        self.run.now_s = now_s
        self.run.delete_pods([who.uid for who, _ in pods])

    def node_of(self, uid):
        return self.run.placements().get(uid)

    def pending(self):
        return {note.key: (note.message, note.plugins) for note in self.run.pending()}


class Virtual:
    """The cluster of a simulated run, as the engine drives it."""

    def __init__(self, plan):
        self.cluster = VirtualCluster(plan, kernel())
        self.direct = 0

    def arrive(self, pod, now_s):
        if self.cluster.place(pod, now_s) is None:
            self.cluster.submit([pod], now_s)
        else:
            self.direct += 1
        self.cluster.run(now_s)

    def remove(self, pods, now_s):
        self.cluster.remove(pods, now_s)

    def node_of(self, uid):
        return self.cluster.node_of(uid)

    def pending(self):
        return {note.key: (note.message, note.plugins) for note in self.cluster.pending()}


def play(scenario):
    """Play the waves of a scenario pod by pod on both; compare after each step."""
    settings = replace_settings(scenario.plan.settings)
    plan = replace(scenario.plan, settings=settings)
    reference, virtual = Reference(plan), Virtual(plan)
    pods = {who.uid: (who, facts) for who, facts in scenario.pods}
    reference.run.add_nodes(scenario.nodes)
    virtual.cluster.add_nodes(scenario.nodes)
    known = {each.name for each in scenario.nodes}
    present = {}

    def same(step):
        for uid in present:
            ours, theirs = virtual.node_of(uid), reference.node_of(uid)
            assert ours == theirs, f"{step}: {uid} is on {ours}, a live run has it on {theirs}"
        assert virtual.pending() == reference.pending(), f"{step}: other pods are pending"

    for wave in scenario.waves:
        now_s = wave.at_s
        added = [*wave.nodes, *(new for old, new in wave.changed if old.name in known)]
        for removed in wave.removed:
            on_it = [pods[uid] for uid in present if reference.node_of(uid) == removed.name]
            for each in (reference, virtual):
                each.remove(on_it, now_s)
            for who, _ in on_it:
                del present[who.uid]
            if removed.name in known:
                reference.run.now_s = now_s
                reference.run.remove_nodes([removed.name])
                virtual.cluster.remove_nodes([removed.name])
                known.discard(removed.name)
        if added:
            reference.run.now_s = now_s
            reference.run.add_nodes(added)
            virtual.cluster.add_nodes(added)
            known |= {each.name for each in added}
        gone = [pods[uid] for uid in wave.gone if uid in present]
        for each in (reference, virtual):
            each.remove(gone, now_s)
        for who, _ in gone:
            del present[who.uid]
        reference.run.run(now_s)
        virtual.cluster.run(now_s)
        same(f"after the changes at {now_s}")
        for each in wave.pods:
            present[each[0].uid] = each
            reference.arrive(each, now_s)
            virtual.arrive(each, now_s)
            same(f"after {each[0].key} at {now_s}")
    virtual.cluster.table.validate()
    return virtual.direct, len(pods)


def replace_settings(settings):
    return settings.model_copy(
        update={"schedulers": 1, "workers": 0, "journal": None, "bounds": Settings().bounds}
    )


@pytest.mark.parametrize("seed", range(54_010_000, 54_010_020))
def test_a_virtual_cluster_decides_like_a_live_run(seed):
    play(make(seed, changes=True))
