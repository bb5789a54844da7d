"""Random clusters: the plugin agrees with upstream's rules node by node."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from roadstead.config.model import default_config
from roadstead.config.plugin_args import PodTopologySpreadArgs
from roadstead.facts.cluster import ClusterFacts, SelectsPods
from roadstead.facts.pod import Owner, PodIdentity, SpreadConstraint
from roadstead.facts.selectors import LabelSelector
from roadstead.framework.cycle_state import CycleState
from roadstead.framework.plugin import Extremes, Handle
from roadstead.framework.profile import Profile
from roadstead.local.decision_paths import open_path
from roadstead.nodes.pod_class import PodClasses
from roadstead.plugins.in_tree import in_tree_registry
from roadstead.plugins.pod_topology_spread import IGNORED, PodTopologySpread
from tests.builders import (
    found_before_filter,
    found_before_score,
    is_affected,
    node,
    pod,
    put,
    require,
    table_of,
    taint,
    term,
    tolerate,
)
from tests.plugins.spread_upstream import HOSTNAME, ZONE, Spreader, filter_nodes, score_nodes
from tests.plugins.upstream import NodeInfo

KEYS = (ZONE, HOSTNAME, "rack")
APPS = ("web", "db")
NAMESPACES = ("default", "other")

app_requirements = st.sampled_from(
    [
        require("app", "In", "web"),
        require("app", "In", "db"),
        require("app", "NotIn", "db"),
        require("app", "Exists"),
        require("rev", "DoesNotExist"),
    ]
)
selectors = st.one_of(
    st.none(),
    st.lists(app_requirements, max_size=2).map(lambda wanted: LabelSelector(tuple(wanted))),
)
constraints = st.builds(
    SpreadConstraint,
    topology_key=st.sampled_from(KEYS),
    max_skew=st.integers(1, 4),
    when_unsatisfiable=st.sampled_from(["DoNotSchedule", "ScheduleAnyway"]),
    selector=selectors,
    min_domains=st.integers(0, 4),
    node_affinity_policy=st.sampled_from(["Honor", "Ignore"]),
    node_taints_policy=st.sampled_from(["Honor", "Ignore"]),
    match_label_keys=st.sampled_from([(), ("rev",), ("rev", "absent")]),
)
pod_labels = st.fixed_dictionaries(
    {}, optional={"app": st.sampled_from(APPS), "rev": st.sampled_from(["1", "2"])}
)
owners = st.sampled_from(
    [
        None,
        *(
            Owner(kind, "owns", "u", version)
            for kind, version in (
                ("ReplicaSet", "apps/v1"),
                ("ReplicaSet", "example.com/v1"),
                ("ReplicationController", "v1"),
                ("Job", "batch/v1"),
            )
        ),
    ]
)
pods_on_nodes = st.builds(
    pod,
    labels=pod_labels,
    namespace=st.sampled_from(NAMESPACES),
    is_terminating=st.sampled_from([False, False, True]),
)
pending_pods = st.builds(
    pod,
    labels=pod_labels,
    namespace=st.sampled_from(NAMESPACES),
    node_selector=st.sampled_from([{}, {}, {"disk": "ssd"}]),
    required_node_terms=st.sampled_from([None, None, (), (term(require("rack", "Exists")),)]),
    tolerations=st.sampled_from([(), (tolerate("gpu", operator="Exists"),)]),
    spread_constraints=st.lists(constraints, max_size=3).map(tuple),
    owner=owners,
)
TAINTS = [taint("gpu"), taint("gpu", effect="NoExecute"), taint("gpu", effect="PreferNoSchedule")]


@st.composite
def clusters(draw):
    """Draw nodes with any of the topology labels, and pods on them."""
    nodes = []
    for number in range(draw(st.integers(0, 7))):
        labels = draw(
            st.fixed_dictionaries(
                {},
                optional={
                    ZONE: st.sampled_from(["a", "b", "c"]),
                    HOSTNAME: st.just(f"n{number}"),
                    "rack": st.sampled_from(["", "r1"]),
                    "disk": st.just("ssd"),
                },
            )
        )
        taints = draw(st.lists(st.sampled_from(TAINTS), max_size=1).map(tuple))
        pods = draw(st.lists(pods_on_nodes, max_size=4))
        nodes.append(NodeInfo(node(f"n{number}", labels=labels, taints=taints), pods))
    return nodes


selecting = st.lists(
    st.builds(
        SelectsPods,
        kind=st.sampled_from(["Service", "ReplicaSet", "ReplicationController"]),
        namespace=st.sampled_from(NAMESPACES),
        name=st.just("owns"),
        selector=st.one_of(
            st.none(),
            st.sampled_from(
                [
                    LabelSelector((require("app", "In", "web"),)),
                    LabelSelector((require("app", "In", "db"), require("rev", "In", "1"))),
                ]
            ),
        ),
    ),
    max_size=4,
    unique_by=lambda each: (each.kind, each.namespace),
).map(tuple)


def manifest(constraint):
    return {
        "topologyKey": constraint.topology_key,
        "maxSkew": constraint.max_skew,
        "whenUnsatisfiable": constraint.when_unsatisfiable,
        "minDomains": constraint.min_domains,
        "nodeAffinityPolicy": constraint.node_affinity_policy,
        "nodeTaintsPolicy": constraint.node_taints_policy,
    }


SYSTEM = tuple(
    SpreadConstraint(key, skew, "ScheduleAnyway", None, 1, "Honor", "Ignore", ())
    for key, skew in ((HOSTNAME, 3), (ZONE, 5))
)


@st.composite
def settings_of_plugin(draw):
    """Draw (arguments, the objects that select pods, upstream's plugin with both)."""
    owning = draw(selecting)
    if draw(st.booleans()):
        return PodTopologySpreadArgs(), owning, Spreader(SYSTEM, True, owning)
    defaults = tuple(draw(st.lists(constraints, max_size=2)))
    args = PodTopologySpreadArgs(tuple(manifest(each) for each in defaults), "List")
    return args, owning, Spreader(defaults, False, owning)


class Asked:
    """A table and the plugin."""

    def __init__(self, args, cluster, nodes):
        self.table = table_of(*(each.facts for each in nodes))
        for each in nodes:
            put(self.table, each.facts.name, *each.pods)
        self.plugin = PodTopologySpread(args, Handle(self.table.classes, cluster))
        self.state = CycleState(len(nodes))

    def filter(self, facts):
        """Return {node name: refusal or None}, or None if PreFilter skips."""
        plugin, table = self.plugin, self.table
        pod_class = table.classes.pod_class(facts)
        if plugin.pre_filter(self.state, pod_class, table).status.is_skip:
            return None
        answers = refusals(plugin.filter(self.state, pod_class, table), table)
        return dict(zip(table.names, answers, strict=True))

    def score(self, facts, feasible):
        """Return ({node name: raw}, {node name: normalized}) of feasible nodes; None after Skip."""
        plugin, table = self.plugin, self.table
        pod_class = table.classes.pod_class(facts)
        state = CycleState(len(table), self.state)
        if plugin.pre_score(state, pod_class, table, lambda: rows_in(table, feasible)).is_skip:
            return None
        scores = plugin.score(state, pod_class, table).tolist()
        raw = {n: s for n, s in zip(table.names, scores, strict=True) if n in feasible}
        return self._normalized(pod_class, raw)

    def _normalized(self, pod_class, raw):
        line = np.array(list(raw.values()), dtype=np.int64)
        scored = [score for score in raw.values() if score != IGNORED]
        extremes = Extremes(min(scored, default=IGNORED), max(scored, default=IGNORED))
        normalized = self.plugin.normalize(self.state, pod_class, line, extremes).tolist()
        shown = {name: 0 if score == IGNORED else score for name, score in raw.items()}
        return shown, dict(zip(raw, normalized, strict=True))


def rows_in(table, names):
    return np.array([name in names for name in table.names], dtype=np.bool_)


def refusals(result, table):
    if result.codes is None:
        return [None] * len(table)
    per_code = [None, *((s.code.upstream_name, s.reasons[0]) for s in result.statuses)]
    return [per_code[code] for code in result.codes.tolist()]


def shuffled(nodes, random):
    """Return the nodes in any order."""
    return random.sample(nodes, len(nodes))


randoms = st.randoms(use_true_random=False)


@given(settings_of_plugin(), clusters(), pending_pods, randoms)
def test_hard_constraints_refuse_like_upstream_in_any_order_of_nodes(
    settings, nodes, pending, random
):
    args, owning, spreader = settings
    expected = filter_nodes(spreader, pending, nodes)

    actual = Asked(args, ClusterFacts((), owning), shuffled(nodes, random)).filter(pending)

    if expected is None:
        assert actual is None
    else:
        assert actual == dict(zip((each.facts.name for each in nodes), expected, strict=True))


@given(settings_of_plugin(), clusters(), pending_pods, randoms)
def test_soft_constraints_score_like_upstream_in_any_order_of_nodes(
    settings, nodes, pending, random
):
    args, owning, spreader = settings
    feasible = {each.facts.name for each in nodes if random.random() < 0.7}
    expected = score_nodes(spreader, pending, nodes, feasible)

    actual = Asked(args, ClusterFacts((), owning), shuffled(nodes, random)).score(pending, feasible)

    assert actual == expected


@given(settings_of_plugin(), clusters(), pending_pods, pending_pods)
def test_pods_with_equal_signatures_get_equal_answers(settings, nodes, first, second):
    args, owning, _ = settings
    cluster = ClusterFacts((), owning)
    plugin = PodTopologySpread(args, Handle(PodClasses(), cluster))
    if plugin.sign(first) != plugin.sign(second):
        return
    everywhere = {each.facts.name for each in nodes}
    answers = [
        (asked.filter(each), asked.score(each, everywhere))
        for each in (first, second)
        for asked in [Asked(args, cluster, nodes)]
    ]

    assert answers[0] == answers[1]


@given(settings_of_plugin(), clusters(), pending_pods, pods_on_nodes, st.data())
def test_a_pod_that_does_not_affect_another_changes_no_answer(
    settings, nodes, pending, placed, data
):
    args, owning, _ = settings
    asked = Asked(args, ClusterFacts((), owning), nodes)
    plugin, table = asked.plugin, asked.table
    pod_class = table.classes.pod_class
    if not nodes or is_affected(plugin, pod_class(pending), pod_class(placed)):
        return
    before = found_before_filter(plugin, pod_class(pending), table)

    put(table, data.draw(st.sampled_from(table.names)), placed)

    assert found_before_filter(plugin, pod_class(pending), table) == before
    assert found_before_score(plugin, pod_class(pending), table) is None


@given(clusters(), pending_pods, st.lists(st.tuples(pods_on_nodes, st.integers(0, 6)), max_size=8))
def test_updated_counts_equal_new_counts(nodes, pending, moves):
    if not nodes:
        return
    asked = Asked(PodTopologySpreadArgs(), ClusterFacts(), nodes)
    kept, table = asked.plugin, asked.table
    pod_class = table.classes.pod_class(pending)
    for facts, place in moves:
        name = table.names[place % len(table)]
        placed = table.classes.pod_class(facts)
        if table.pods(table.row_of(name)).get(placed):
            table.remove_pod(name, placed)
        else:
            table.add_pod(name, placed)

        fresh = PodTopologySpread(PodTopologySpreadArgs(), Handle(table.classes))
        found, wanted = (found_before_filter(plugin, pod_class, table) for plugin in (kept, fresh))
        assert found == wanted


def profiles_of(cluster):
    def build(classes):
        return {
            each.scheduler_name: Profile(each, in_tree_registry(), Handle(classes, cluster))
            for each in default_config().profiles
        }

    return build


def everything_labelled(number):
    labels = {ZONE: f"z{number % 3}", HOSTNAME: f"n{number}", "rack": f"r{number % 2}"}
    return node(f"n{number}", cpu=1000, pods=3 + number % 3, labels=labels)


spread_pods = st.builds(
    pod,
    cpu=st.sampled_from([100, 300, 500]),
    labels=pod_labels,
    spread_constraints=st.lists(constraints, max_size=2).map(tuple),
)


def decided(path, nodes, wanted):
    """Return the decisions of a path for some pods, one batch after another."""
    path.add_nodes(nodes)
    left = [
        path.prepare(PodIdentity(f"u{number}", "default", f"p{number}"), facts)
        for number, facts in enumerate(wanted)
    ]
    found = []
    while left:
        decisions = path.decide(left)
        found += decisions
        left = left[len(decisions) :]
    return [contents(each) for each in found]


@given(st.lists(spread_pods, min_size=1, max_size=12))
def test_batches_decide_like_single_pods_in_turn(pods):
    nodes = [everything_labelled(number) for number in range(6)]
    service = SelectsPods(
        "Service", "default", "web", LabelSelector((require("app", "In", "web"),))
    )
    build = profiles_of(ClusterFacts((), (service,)))

    together, alone = (
        decided(open_path(name, build), nodes, pods) for name in ("batches", "plain")
    )

    assert together == alone


def contents(decision):
    refused = decision.diagnosis.message("") if decision.diagnosis else ""
    return (decision.node_name, decision.feasible, decision.total, decision.best, refused)
