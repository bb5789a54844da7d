"""Several profiles in one configuration: chosen by scheduler name, with one queue for all."""

import pytest

from roadstead.actors.runs import client
from roadstead.actors.runs.launch import ActorLauncher
from roadstead.config.errors import ConfigError
from roadstead.config.settings import Settings
from roadstead.run import RunPlan
from tests.actors.world import identity, inputs_of, placed, plan_of, run_inline
from tests.builders import node, pod

PROFILES = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
- schedulerName: packs
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}
  plugins:
    score:
      disabled: [{name: NodeResourcesBalancedAllocation}]
- schedulerName: careless
  plugins:
    filter:
      disabled: [{name: TaintToleration}, {name: NodeUnschedulable}]
"""
TWO_SORTS = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: one
- schedulerName: other
  plugins:
    queueSort:
      enabled: [{name: PrioritySort}]
      disabled: [{name: PrioritySort}]
"""


@pytest.fixture(autouse=True)
def _quick_looks(monkeypatch):
    monkeypatch.setattr(client, "POLL_S", 0.002)


def wanted(name, scheduler, **facts):
    return identity(name), pod(cpu=facts.pop("cpu", 500), scheduler_name=scheduler, **facts)


def fleet():
    """Return a half full node, an empty one, and a cordoned one."""
    nodes = [node("empty", cpu=4000), node("half", cpu=4000), node("shut", cpu=4000)]
    nodes[2] = node("shut", cpu=64000, memory=nodes[2].allocatable[1][1] * 16, unschedulable=True)
    running = [(identity("old"), pod(cpu=2000), "half")]
    return nodes, running


def three_kinds():
    nodes, running = fleet()
    pending = [
        wanted("spreads", "default-scheduler"),
        wanted("fills", "packs"),
        wanted("dares", "careless"),
        wanted("foreign", "theirs"),
    ]
    return inputs_of(nodes, pending, running)


WHERE = {"default/spreads": "empty", "default/fills": "half", "default/dares": "shut"}


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("batch", [1, 64])
def test_each_pod_is_decided_by_the_profile_it_names(workers, batch):
    outcome, _ = run_inline(three_kinds(), plan_of(config=PROFILES, workers=workers, batch=batch))

    assert placed(outcome) == WHERE
    (foreign,) = outcome.pending
    assert foreign.message == 'no profile has the scheduler name "theirs"'


@pytest.mark.ray
def test_on_ray_each_pod_is_decided_by_the_profile_it_names():
    plan = RunPlan(Settings(runtime="ray", workers=2), PROFILES, "scheduler.yaml")

    outcome = ActorLauncher().run(three_kinds(), plan, lambda progress: None)

    assert placed(outcome) == WHERE
    assert [each.message for each in outcome.pending] == [
        'no profile has the scheduler name "theirs"'
    ]


@pytest.mark.parametrize("batch", [1, 64])
def test_one_queue_orders_pods_of_all_profiles_by_priority(batch):
    nodes = [node("only", cpu=1000)]
    pending = [
        wanted("low", "default-scheduler", cpu=1000, priority=1),
        wanted("high", "packs", cpu=1000, priority=9, preemption_policy="Never"),
        wanted("middle", "careless", cpu=1000, priority=5),
    ]

    outcome, _ = run_inline(inputs_of(nodes, pending), plan_of(config=PROFILES, batch=batch))

    assert placed(outcome) == {"default/high": "only"}
    assert {each.pod for each in outcome.pending} == {"default/low", "default/middle"}


def test_profiles_with_different_queue_sorts_are_refused_before_a_run():
    with pytest.raises(ConfigError) as refused:
        plan_of(config=TWO_SORTS).config()

    assert refused.value.problems[0].field == "profiles[1].plugins.queueSort"
    assert refused.value.problems[0].rule == "must be the same for all profiles"
