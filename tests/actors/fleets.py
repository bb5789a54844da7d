"""Random inputs of whole runs: small fleets whose pods affect each other."""

from dataclasses import replace

from hypothesis import strategies as st

from roadstead.facts.pod import PodAffinityTerm, SpreadConstraint
from roadstead.facts.selectors import LabelSelector
from tests.actors.world import identity, inputs_of
from tests.builders import GIB, MIB, node, pod, require
from tests.strategies import IMAGES, TAINTS, ZONE
from tests.strategies import pods as any_pods

HOSTNAME = "kubernetes.io/hostname"
ZONES = ("a", "b", "c")


def apps(*names):
    return LabelSelector((require("app", "In", *names),))


def near(selector, key=ZONE, weight=0):
    """Return an (anti-)affinity term on pods of the default namespace."""
    return PodAffinityTerm(key, selector, ("default",), None, weight)


def spread(key=ZONE, max_skew=1, when="DoNotSchedule", selector=None):
    return SpreadConstraint(key, max_skew, when, selector, 1, "Honor", "Ignore", ())


def host(number, zone=None, **facts):
    labels = {HOSTNAME: f"n{number}"} | ({ZONE: zone} if zone else {})
    return node(f"n{number}", labels=labels | facts.pop("labels", {}), **facts)


nodes = st.lists(
    st.builds(
        host,
        number=st.integers(0, 11),
        zone=st.sampled_from([None, *ZONES]),
        cpu=st.sampled_from([1000, 3999]),
        pods=st.integers(1, 5),
        labels=st.sampled_from([{}, {"disk": "ssd"}]),
        taints=st.one_of(st.just(()), st.just(()), st.tuples(st.sampled_from(TAINTS))),
        images=st.dictionaries(
            st.sampled_from(IMAGES), st.sampled_from([90 * MIB, 700 * MIB, 2 * GIB]), max_size=2
        ),
    ),
    min_size=1,
    max_size=10,
    unique_by=lambda each: each.name,
)

terms = st.builds(
    near, st.sampled_from([apps("web"), apps("db")]), st.sampled_from([ZONE, HOSTNAME])
)
weighted = st.builds(
    near,
    st.sampled_from([apps("web"), apps("db")]),
    st.sampled_from([ZONE, HOSTNAME]),
    st.sampled_from([1, 50]),
)
constraints = st.builds(
    spread,
    st.sampled_from([ZONE, HOSTNAME]),
    st.integers(1, 2),
    st.sampled_from(["DoNotSchedule", "ScheduleAnyway"]),
    st.sampled_from([apps("web"), apps("web", "db")]),
)


def _seldom(strategy):
    return st.one_of(st.just(()), st.just(()), st.tuples(strategy))


meeting_pods = st.builds(
    pod,
    cpu=st.sampled_from([None, 100, 500]),
    labels=st.sampled_from([{"app": "web"}, {"app": "db"}]),
    pod_affinity=_seldom(terms),
    pod_anti_affinity=_seldom(terms),
    preferred_pod_affinity=_seldom(weighted),
    preferred_pod_anti_affinity=_seldom(weighted),
    spread_constraints=_seldom(constraints),
)
# A lower priority would make these pods victims of preemption.
pods = st.one_of(any_pods.map(lambda facts: replace(facts, priority=0)), meeting_pods)


@st.composite
def inputs(draw):
    """Draw a fleet, some running pods, and some pending pods."""
    fleet = draw(nodes)
    names = st.sampled_from([facts.name for facts in fleet])
    running = draw(st.lists(st.tuples(meeting_pods, names), max_size=4))
    waiting = draw(st.lists(pods, min_size=1, max_size=12))
    return inputs_of(
        fleet,
        [(identity(f"p{number}"), facts) for number, facts in enumerate(waiting)],
        [(identity(f"r{number}"), facts, name) for number, (facts, name) in enumerate(running)],
    )
