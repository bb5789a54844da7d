"""The filters of a plan's users, as I12 asks them."""

import pytest

from roadstead.config.settings import Settings
from roadstead.run import RunPlan
from tests.builders import node, pod
from tests.peculiar_plugins import config_with, peculiar
from tests.simulation.filters import UsersFilters

NODES = [node(name) for name in ("n3", "n4", "n5")]
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
    ],
)
def test_a_node_passes_where_none_of_the_plan_refuses_it(names, facts, passed):
    plan = RunPlan(Settings(), config_with(*names), "a.yaml", plugins=peculiar(*names))

    assert UsersFilters(plan, NODES).passed(facts) == passed
