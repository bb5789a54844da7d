"""A Filter that fails, instead of refusing, ends the cycle in upstream's words."""

import numpy as np
import pytest

from roadstead.cycle.batch import PodInCycle
from roadstead.cycle.local import LocalShards
from roadstead.cycle.plain import PlainCycle
from roadstead.framework.plugin import FilterPlugin, FilterResult, Reads
from roadstead.framework.tie_break import TieBreak
from roadstead.nodes.pod_info import PodClasses
from roadstead.nodes.table import NodeTable
from roadstead.protocol.status import error, unschedulable
from tests.builders import node, pod, profile_of

TEXT = 'running "Asks" filter plugin: the oracle is silent'


class Asks(FilterPlugin):
    """Refuses n1 and fails for what is in `fails_on`."""

    name = "Asks"
    reads = Reads.NODE
    fails_on = frozenset({"n2"})

    def filter(self, state, pod, table):
        codes = [1 if name == "n1" else 2 * (name in self.fails_on) for name in table.names]
        answers = (unschedulable("no"), error("the oracle is silent"))
        return FilterResult(np.array(codes, dtype=np.int32), answers)

    def sign(self, pod):
        return ""


class Live(Asks):
    reads = Reads.ROW


def profiles_of(kind):
    points = {"preFilter": ["NodeResourcesFit"], "filter": ["NodeResourcesFit", "Asks"]}
    return lambda classes: {
        "default-scheduler": profile_of(points, plugins=[kind], classes=classes)
    }


def in_cycle(classes, profiles):
    info = classes.info(pod(cpu=100))
    return PodInCycle("u", "default/p", info, profiles["default-scheduler"].class_of(info, "u"))


def paths(kind, names):
    """(decision, explanation) on one table, and over 1 and 3 shards."""
    table = NodeTable(PodClasses())
    profiles = profiles_of(kind)(table.classes)
    plain = PlainCycle(table, profiles, TieBreak("first"))
    for name in names:
        table.add_node(node(name))
    waiting = in_cycle(table.classes, profiles)
    yield plain.decide(waiting), plain.explain(waiting)
    for shards in (1, 3):
        local = LocalShards(shards, profiles_of(kind), TieBreak("first"))
        local.add_nodes(node(name, labels={"topology.kubernetes.io/zone": name}) for name in names)
        waiting = in_cycle(local.cycle.classes, local.profiles)
        explanation = local.explain(waiting)
        yield local.decide([waiting])[0], explanation


@pytest.mark.parametrize("kind", [Asks, Live])
def test_a_filter_that_fails_on_any_node_fails_the_cycle_though_others_could_take_the_pod(kind):
    for decision, explanation in paths(kind, ["n1", "n2", "n3", "n4"]):
        assert (decision.node_name, decision.error) == (None, TEXT)
        assert explanation.cycle_error == TEXT
        assert explanation.as_expected()["cycleError"] == TEXT


@pytest.mark.parametrize("kind", [Asks, Live])
def test_where_no_node_fails_the_others_take_the_pod(kind):
    for decision, explanation in paths(kind, ["n1", "n3"]):
        assert (decision.node_name, decision.error) == ("n3", "")
        assert explanation.cycle_error == ""
