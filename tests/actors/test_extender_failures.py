"""A failing extender leaves pods pending with upstream's message, and ends no run."""

import pytest

from roadstead.config.settings import Settings
from roadstead.run import RunInputs, RunPlan
from tests.actors.world import pods_of, run_virtually
from tests.builders import node, pod
from tests.faulty_extender import (
    ERROR_MESSAGE,
    LATE,
    NO_NODE,
    REFUSED,
    URL,
    Faults,
    config_of,
    extender,
)

NAMES = ("a", "b", "c")
NOT_JSON = "invalid character 'o' in literal null (expecting 'u')"

AT_FILTER = {
    "refuse": f'Post "{URL}/filter": {REFUSED}',
    "late": f'Post "{URL}/filter": {LATE}',
    "drop": f'Post "{URL}/filter": EOF',
    "status": f"failed filter with extender at URL {URL}/filter, code 500",
    "garbage": NOT_JSON,
    "error": ERROR_MESSAGE,
    "unknown": f'extender "{URL}" claims a filtered node "{NO_NODE}" '
    "which is not found in the input node list",
}
AT_BIND = {
    "refuse": f'Post "{URL}/bind": {REFUSED}',
    "drop": f'Post "{URL}/bind": EOF',
    "status": f"failed bind with extender at URL {URL}/bind, code 500",
    "garbage": NOT_JSON,
    "error": ERROR_MESSAGE,
}
PATHS = {"holds the nodes": {}, "workers": {"workers": 2}}


def run(faults, path="workers", **fields):
    settings = Settings(runtime="inline", **PATHS[path])
    plan = RunPlan(settings, config_of(extender(**fields)), "mine.yaml")
    nodes = tuple(node(f"n{i}", labels={"topology.kubernetes.io/zone": f"z{i}"}) for i in range(4))
    inputs = RunInputs(nodes, (), pods_of(*NAMES, facts=pod(cpu=100)))
    return run_virtually(inputs, plan, faults.caller_of)


def messages(outcome):
    return [each.message for each in outcome.pending]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("fault", AT_FILTER)
def test_a_failing_filter_is_the_reason_of_its_pods(fault, path):
    faults = Faults(verbs=("filter",), **{fault: 1.0})

    assert messages(run(faults, path)) == [AT_FILTER[fault]] * len(NAMES)


@pytest.mark.parametrize("fault", AT_BIND)
def test_a_failing_bind_is_the_reason_of_its_pods(fault):
    faults = Faults(verbs=("bind",), **{fault: 1.0})

    assert messages(run(faults)) == [AT_BIND[fault]] * len(NAMES)


def test_nodes_refused_by_an_extender_are_counted_by_its_reasons():
    outcome = run(Faults(none_left=1.0))

    for each in outcome.pending:
        assert each.message.startswith("0/4 nodes are available: 2 broken for good, 2 busy.")
        assert each.reasons == (("broken for good", 2), ("busy", 2))
        assert "Extender" in each.plugins


@pytest.mark.parametrize("fault", ["refuse", "drop", "garbage", "late"])
def test_a_failing_prioritize_gives_no_scores_and_the_pods_are_placed(fault):
    outcome = run(Faults(verbs=("prioritize",), **{fault: 1.0}))

    assert len(outcome.placements) == len(NAMES)


def test_a_failing_ignorable_extender_is_left_out():
    faults = Faults(refuse=1.0)

    assert len(run(faults, ignorable=True).placements) == len(NAMES)
    assert faults.happened["refuse"] > 0, "the extender was called and refused"


def test_an_extender_that_fails_sometimes_delays_its_pods():
    faults = Faults(seed=3, refuse=0.1, drop=0.1, slow=0.5, verbs=("filter", "prioritize"))

    assert len(run(faults).placements) == len(NAMES)
    assert faults.happened["slow"] > 0, "some calls were slow"
