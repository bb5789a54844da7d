"""Totals of a class, kept up to date as pods come and go."""

from __future__ import annotations

from roadstead.config.model import default_config
from roadstead.cycle.batch import PodInCycle
from roadstead.cycle.plain import PlainCycle
from roadstead.framework.plugin import Handle
from roadstead.framework.profile import Profile
from roadstead.framework.tie_break import TieBreak
from roadstead.plugins.in_tree import in_tree_registry
from tests.builders import node, pod, put, table_of


def plain_cycle(table):
    handle = Handle(table.classes)
    profile = Profile(default_config().profiles[0], in_tree_registry(), handle)
    profiles = {profile.scheduler_name: profile}
    return PlainCycle(table, profiles, TieBreak("first"), name_best=True)


def in_cycle(cycle, facts, name):
    info = cycle.table.classes.info(facts)
    return PodInCycle(name, f"default/{name}", info, signature=info.index)


def test_a_node_that_a_pod_has_left_is_compared_by_all_its_scores_again():
    big, small = pod(cpu=3900, memory=1), pod(cpu=500, memory=1)
    table = table_of(node("full", images={"a:1": 900 * 2**20}), node("free"))
    put(table, "full", big)
    cycle = plain_cycle(table)
    before = cycle.decide(in_cycle(cycle, small, "first"))

    table.remove_pod("full", table.classes.info(big))
    after = cycle.decide(in_cycle(cycle, small, "second"))

    fresh = table_of(node("full", images={"a:1": 900 * 2**20}), node("free"))
    put(fresh, "free", small)
    other = plain_cycle(fresh)
    expected = other.decide(in_cycle(other, small, "second"))
    assert (before.node_name, before.feasible) == ("free", 1)
    assert (after.node_name, after.total, after.best) == (
        expected.node_name,
        expected.total,
        expected.best,
    )
