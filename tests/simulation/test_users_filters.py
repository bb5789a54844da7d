"""The filters of a plan's users, as I12 calls them."""

from types import SimpleNamespace

import pytest

from roadstead.config.settings import Settings
from roadstead.run import RunPlan
from tests.builders import node, pod
from tests.peculiar_plugins import config_with, peculiar
from tests.simulation.filters import UsersFilters

WORLD = SimpleNamespace(
    nodes={name: node(name) for name in ("n3", "n4", "n5")},
    pods={"n3": {"a": pod(cpu=150), "b": pod(cpu=150)}, "n4": {"c": pod(cpu=50)}, "gone": {}},
)
BOTH = ("FailsOnSomeNodes", "NamesSomeNodes", "LikesDigits", "RefusesToReserve")


@pytest.mark.parametrize(
    ("names", "facts", "passed"),
    [
        ((), pod(cpu=100), {"n3", "n4", "n5"}),
        (BOTH, pod(cpu=50), {"n3", "n4", "n5"}),
        (BOTH, pod(cpu=100), {"n3"}),
        (BOTH, pod(cpu=250), {"n4", "n5"}),
        (BOTH, pod(cpu=600), {"n4"}),
        (BOTH, pod(cpu=50, priority=5), set()),
        (("LikesDigits",), pod(cpu=100), {"n3", "n4", "n5"}),
        (("SeesCrowds",), pod(cpu=50), {"n3", "n4", "n5"}),
        (("SeesCrowds",), pod(cpu=150), {"n4"}),
        (("SeesCrowds",), pod(cpu=900), set()),
    ],
)
def test_a_node_passes_if_no_filter_of_the_plan_refuses_it(names, facts, passed):
    plan = RunPlan(Settings(), config_with(*names), "a.yaml", plugins=peculiar(*names))

    assert UsersFilters(plan, WORLD).passed(facts) == passed
