"""Pods with equal signatures get equal answers from every in-tree plugin, on any table.

Each fact of a pod is changed if the signature leaves it out, alone and together with others.
"""

from dataclasses import fields, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roadstead.cli.plugin.checks import check_shapes
from roadstead.cli.plugin.plugin_under_test import answers
from roadstead.cli.plugin.samples import POD_VALUES, sample_fleet
from roadstead.config.model import default_config
from roadstead.config.plugin_args import (
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesFitArgs,
    PodTopologySpreadArgs,
    RequestedToCapacityRatio,
    ScoringStrategy,
    ShapePoint,
)
from roadstead.facts.pod import GroupMembership, PodClaim, PodFacts, PodReference, Volume
from roadstead.nodes.pod_class import PodClasses
from roadstead.protocol.errors import UnsupportedError
from tests.plugins.subjects import in_tree_subject

PROFILE = default_config().profiles[0]
ASKED = sorted(
    {ref.name for point in ("preFilter", "filter", "score") for ref in PROFILE.at(point)}
)
CLAIM = Volume("v", "persistentVolumeClaim", (("claimName", "data"),))
DISK = Volume("d", "gcePersistentDisk", (("pdName", "d-1"), ("readOnly", "false")))
OTHER_VALUES = {
    "node_name": ("", "node-00001"),
    "nominated_node_name": ("", "node-00002"),
    "container_requests": (None, (("cpu", 700), ("memory", 1 << 20))),
    "volumes": ((), (CLAIM,), (DISK,)),
    "device_claims": ((), (PodClaim("gpu"),)),
    "claims_as": (None, PodReference("uid", "name")),
    "is_preempted": (False, True),
    "pod_group": (None, GroupMembership("gang", 3), GroupMembership("gang", error="no number")),
}
VALUES = OTHER_VALUES | dict(POD_VALUES)
ONE_FOR_ALL = {"scheduler_name"}
"""Another scheduler name means another profile, and never the same class."""

SHAPE = RequestedToCapacityRatio((ShapePoint(0, 10), ShapePoint(60, 3), ShapePoint(100, 0)))
RATIO = ScoringStrategy("RequestedToCapacityRatio", requested_to_capacity_ratio=SHAPE)
SPREAD = {
    "maxSkew": 1,
    "topologyKey": "kubernetes.io/hostname",
    "whenUnsatisfiable": "DoNotSchedule",
}
SSD = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
OTHER_ARGS = {
    "InterPodAffinity": InterPodAffinityArgs(50, ignore_preferred_terms_of_existing_pods=True),
    "NodeAffinity": NodeAffinityArgs(
        {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [SSD]}}
    ),
    "NodeResourcesFit": NodeResourcesFitArgs(scoring_strategy=RATIO),
    "PodTopologySpread": PodTopologySpreadArgs((SPREAD,), "List"),
}


def subject(name, args=None):
    profile = PROFILE if args is None else replace(PROFILE, args={**PROFILE.args, name: args})
    return in_tree_subject(name, profile)


def answers_or_missing(asked, facts, table):
    """Return the plugin's answers, or the missing input that it reports."""
    try:
        return answers(asked, facts, table)
    except UnsupportedError as missing:
        return missing.plugin, missing.field


def signed_alike(plugin, facts):
    """Yield pods of one signature: each with one changed fact, then one with all the changes."""
    signature, mixed = plugin.sign(facts), facts
    assert signature is not None
    for name, values in VALUES.items():
        for value in values:
            other = replace(facts, **{name: value})
            if other != facts and plugin.sign(other) == signature:
                yield other
                both = replace(mixed, **{name: value})
                mixed = both if plugin.sign(both) == signature else mixed
    yield mixed


def check(asked, seed, place):
    fleet = sample_fleet(seed, nodes=9, pods=30)
    table = fleet.make_table()
    classes = fleet.classes()
    facts = classes[place % len(classes)]
    expected = answers_or_missing(asked, facts, table)
    for other in signed_alike(asked.build(), facts):
        assert answers_or_missing(asked, other, table) == expected, (facts, other)


seeds = st.integers(0, 1 << 20)
places = st.integers(0, 29)


@pytest.mark.parametrize("name", ASKED)
@given(seeds)
def test_answers_hold_for_a_shape_if_the_plugin_declares_it(name, seed):
    asked = subject(name)
    assert vars(asked.plugin_class)["shares_by_shape"]
    fleet = sample_fleet(seed, nodes=9, pods=10)
    try:
        wrong = [each for each in check_shapes(asked, fleet) if each is not None]
    except UnsupportedError:
        return

    assert not wrong


def test_every_fact_of_a_pod_is_changed():
    differing = {field.name for field in fields(PodFacts)} ^ (VALUES.keys() | ONE_FOR_ALL)

    assert not differing, "give it values in POD_VALUES or OTHER_VALUES"


@pytest.mark.parametrize("name", ASKED)
@settings(max_examples=15, deadline=None)
@given(seed=seeds, place=places)
def test_equal_signatures_get_equal_answers(name, seed, place):
    check(subject(name), seed, place)


@pytest.mark.parametrize("name", sorted(OTHER_ARGS))
@settings(max_examples=10, deadline=None)
@given(seed=seeds, place=places)
def test_equal_signatures_get_equal_answers_with_other_arguments(name, seed, place):
    check(subject(name, OTHER_ARGS[name]), seed, place)


@settings(max_examples=15, deadline=None)
@given(seed=seeds, place=places)
def test_pods_of_one_class_of_the_default_profile_get_equal_answers_from_every_plugin(seed, place):
    fleet = sample_fleet(seed, nodes=9, pods=30)
    table, classes = fleet.make_table(), fleet.classes()
    facts = classes[place % len(classes)]
    numbers = PodClasses()
    profile = subject("NodeName").profiles_with(numbers)["default-scheduler"]
    key = profile.signature_of(numbers.pod_class(facts), "one")
    mixed = facts
    for name, values in VALUES.items():
        for value in values:
            other = replace(mixed, **{name: value})
            mixed = other if profile.signature_of(numbers.pod_class(other), "two") == key else mixed

    for name in ASKED:
        asked = subject(name)
        assert answers_or_missing(asked, mixed, table) == answers_or_missing(asked, facts, table), (
            name,
            facts,
            mixed,
        )


def test_sample_pods_have_several_signatures_for_each_plugin():
    pods = [facts for _, facts in sample_fleet(1, pods=200).pods]

    for name in ("NodeAffinity", "NodeResourcesFit", "TaintToleration", "InterPodAffinity"):
        assert len({subject(name).build().sign(facts) for facts in pods}) > 1, name
