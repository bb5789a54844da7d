"""Small clusters and questions for the tests of what-if."""

from roadstead.facts.disruption import DisruptionBudget
from roadstead.facts.pod import Owner
from roadstead.facts.selectors import LabelSelector
from roadstead.inputs.find_pod import InputPod
from roadstead.run import RunPlan
from roadstead.whatif.fit import CountedSpec, FitQuestion, fit
from tests.actors.world import identity, inputs_of, plan_of
from tests.builders import pod, require

ZONE = "topology.kubernetes.io/zone"


def asked(name, facts, ratio=1):
    return CountedSpec(name, InputPod(identity(name), facts, ""), ratio)


def fit_of(nodes, facts, given=(), running=(), plan=None, **question):
    """Count replicas of one pod."""
    inputs = inputs_of(nodes, given, running)
    return fit(inputs, plan or plan_of(), FitQuestion((asked("x", facts),), **question))


def owned(kind="ReplicaSet", name="web", **facts):
    """Return a pod with a controller."""
    return pod(owner=Owner(kind, name, f"uid-{name}"), **facts)


def running(name, node_name, facts):
    return identity(name), facts, node_name


def budget(name, app, allowed):
    selector = LabelSelector((require("app", "In", app),))
    return DisruptionBudget("default", name, selector, allowed)


def plan_with(*budgets, **settings):
    plan = plan_of(**settings)
    cluster = type(plan.cluster)(budgets=budgets)
    return RunPlan(plan.settings, cluster=cluster)
