"""Random worlds: the plugin over any sharding says what upstream's rules say node by node."""

from functools import reduce

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from roadstead.config.model import default_config
from roadstead.config.plugin_args import PodTopologySpreadArgs
from roadstead.cycle.batch import PodInCycle
from roadstead.cycle.local import LocalShards
from roadstead.cycle.plain import PlainCycle
from roadstead.facts.cluster import ClusterFacts, SelectsPods
from roadstead.facts.pod import Owner, SpreadConstraint
from roadstead.facts.selectors import LabelSelector
from roadstead.framework.cycle_state import CycleState
from roadstead.framework.plugin import Extremes, Handle
from roadstead.framework.profile import Profile
from roadstead.framework.tie_break import TieBreak
from roadstead.nodes.pod_info import PodClasses
from roadstead.nodes.table import NodeTable
from roadstead.plugins.in_tree import in_tree_registry
from roadstead.plugins.pod_topology_spread import IGNORED, PodTopologySpread
from roadstead.protocol.codec import from_wire, pack, to_wire, unpack
from tests.builders import node, pod, put, require, table_of, taint, term, tolerate
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
    """Nodes with any of the topology labels, and pods on them."""
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
    """(arguments, what selects pods, the same as upstream's plugin)."""
    owning = draw(selecting)
    if draw(st.booleans()):
        return PodTopologySpreadArgs(), owning, Spreader(SYSTEM, True, owning)
    defaults = tuple(draw(st.lists(constraints, max_size=2)))
    args = PodTopologySpreadArgs(tuple(manifest(each) for each in defaults), "List")
    return args, owning, Spreader(defaults, False, owning)


class Shards:
    """One plugin per shard, as in one process per shard; summaries travel between them."""

    def __init__(self, args, cluster, parts):
        self.tables = []
        self.plugins = []
        for part in parts:
            table = table_of(*(each.facts for each in part))
            for each in part:
                put(table, each.facts.name, *each.pods)
            self.tables.append(table)
            self.plugins.append(PodTopologySpread(args, Handle(table.classes, cluster)))
        self.states = [CycleState(sum(map(len, self.tables))) for _ in parts]

    def _each(self, facts):
        infos = [table.classes.info(facts) for table in self.tables]
        return list(zip(self.plugins, self.states, infos, self.tables, strict=True))

    def filter(self, facts):
        """{node name: refusal or None}, or None where PreFilter skips."""
        summaries = [plugin.filter_summary(info, t) for plugin, _, info, t in self._each(facts)]
        for state, summary in zip(self.states, merged(summaries), strict=True):
            if summary is not None:
                state.filter_summaries["PodTopologySpread"] = summary
        told = {}
        for plugin, state, info, table in self._each(facts):
            if plugin.pre_filter(state, info).status.is_skip:
                return None
            told |= zip(
                table.names, refusals(plugin.filter(state, info, table), table), strict=True
            )
        return told

    def score(self, facts, feasible):
        """({node name: raw}, {node name: normalized}) of feasible nodes; None after Skip."""
        summaries = [
            plugin.score_summary(state, info, table, rows_in(table, feasible))
            for plugin, state, info, table in self._each(facts)
        ]
        raw = {}
        for (plugin, state, info, table), summary in zip(
            self._each(facts), merged(summaries), strict=True
        ):
            if summary is not None:
                state.score_summaries["PodTopologySpread"] = summary
            if plugin.pre_score(state, info).is_skip:
                return None
            scores = plugin.score(state, info, table).tolist()
            raw |= {n: s for n, s in zip(table.names, scores, strict=True) if n in feasible}
        return self._normalized(facts, raw)

    def _normalized(self, facts, raw):
        scored = [score for score in raw.values() if score != IGNORED]
        extremes = Extremes(min(scored, default=IGNORED), max(scored, default=IGNORED))
        plugin, state, info, _ = self._each(facts)[0]
        line = np.array(list(raw.values()), dtype=np.int64)
        normalized = plugin.normalize(state, info, line, extremes).tolist()
        shown = {name: 0 if score == IGNORED else score for name, score in raw.items()}
        return shown, dict(zip(raw, normalized, strict=True))


def merged(summaries):
    """Every shard's copy of the merged summary, after a journey."""
    told = [each for each in summaries if each is not None]
    if not told:
        return [None] * len(summaries)
    both_ways = reduce(lambda a, b: a.merge(b), told), reduce(lambda a, b: b.merge(a), told)
    assert both_ways[0] == both_ways[1]
    data = pack(to_wire(both_ways[0]))
    return [from_wire(type(told[0]), unpack(data)) for _ in summaries]


def rows_in(table, names):
    return np.array([name in names for name in table.names], dtype=np.bool_)


def refusals(result, table):
    if result.codes is None:
        return [None] * len(table)
    said = [None, *((s.code.upstream_name, s.reasons[0]) for s in result.statuses)]
    return [said[code] for code in result.codes.tolist()]


def dealt(nodes, shards, random):
    """The nodes in any order over so many shards, some of them perhaps empty."""
    parts = [[] for _ in range(shards)]
    for each in random.sample(nodes, len(nodes)):
        parts[random.randrange(shards)].append(each)
    return parts


sharding = (st.integers(1, 4), st.randoms(use_true_random=False))


@given(settings_of_plugin(), clusters(), pending_pods, *sharding)
def test_hard_constraints_refuse_as_upstream_over_any_sharding(
    settings, nodes, pending, shards, random
):
    args, owning, spreader = settings
    expected = filter_nodes(spreader, pending, nodes)

    told = Shards(args, ClusterFacts((), owning), dealt(nodes, shards, random)).filter(pending)

    if expected is None:
        assert told is None
    else:
        assert told == dict(zip((each.facts.name for each in nodes), expected, strict=True))


@given(settings_of_plugin(), clusters(), pending_pods, *sharding)
def test_soft_constraints_score_as_upstream_over_any_sharding(
    settings, nodes, pending, shards, random
):
    args, owning, spreader = settings
    feasible = {each.facts.name for each in nodes if random.random() < 0.7}
    expected = score_nodes(spreader, pending, nodes, feasible)

    told = Shards(args, ClusterFacts((), owning), dealt(nodes, shards, random)).score(
        pending, feasible
    )

    assert told == expected


@given(settings_of_plugin(), clusters(), pending_pods, pending_pods)
def test_equal_signatures_mean_equal_answers(settings, nodes, first, second):
    args, owning, _ = settings
    cluster = ClusterFacts((), owning)
    plugin = PodTopologySpread(args, Handle(PodClasses(), cluster))
    if plugin.sign(first) != plugin.sign(second):
        return
    everywhere = {each.facts.name for each in nodes}
    answers = [
        (shards.filter(each), shards.score(each, everywhere))
        for each in (first, second)
        for shards in [Shards(args, cluster, [nodes])]
    ]

    assert answers[0] == answers[1]


@given(settings_of_plugin(), clusters(), pending_pods, pods_on_nodes, st.data())
def test_a_pod_that_does_not_affect_another_changes_no_answer(
    settings, nodes, pending, placed, data
):
    args, owning, _ = settings
    shards = Shards(args, ClusterFacts((), owning), [nodes])
    plugin, table = shards.plugins[0], shards.tables[0]
    info = table.classes.info
    if not nodes or plugin.affected_by(info(pending), info(placed)):
        return
    before = plugin.filter_summary(info(pending), table)

    put(table, data.draw(st.sampled_from(table.names)), placed)

    assert plugin.filter_summary(info(pending), table) == before
    feasible = np.ones(len(table), dtype=np.bool_)
    assert plugin.score_summary(shards.states[0], info(pending), table, feasible) is None


@given(clusters(), pending_pods, st.lists(st.tuples(pods_on_nodes, st.integers(0, 6)), max_size=8))
def test_counts_kept_up_pod_by_pod_equal_counts_from_scratch(nodes, pending, moves):
    if not nodes:
        return
    shards = Shards(PodTopologySpreadArgs(), ClusterFacts(), [nodes])
    kept, table = shards.plugins[0], shards.tables[0]
    info = table.classes.info(pending)
    for facts, place in moves:
        name = table.names[place % len(table)]
        placed = table.classes.info(facts)
        if table.pods(table.row_of(name)).get(placed):
            table.remove_pod(name, placed)
        else:
            table.add_pod(name, placed)

        fresh = PodTopologySpread(PodTopologySpreadArgs(), Handle(table.classes))
        assert kept.filter_summary(info, table) == fresh.filter_summary(info, table)


def profiles_of(cluster):
    def build(classes):
        return {
            each.scheduler_name: Profile(each, in_tree_registry(), Handle(classes, cluster))
            for each in default_config().profiles
        }

    return build


def in_cycle(number, facts, classes, profiles):
    signature = profiles["default-scheduler"].signature(facts, f"u{number}")
    return PodInCycle(f"u{number}", f"default/p{number}", classes.info(facts), signature)


def everything_labelled(number):
    labels = {ZONE: f"z{number % 3}", HOSTNAME: f"n{number}", "rack": f"r{number % 2}"}
    return node(f"n{number}", cpu=1000, pods=3 + number % 3, labels=labels)


spread_pods = st.builds(
    pod,
    cpu=st.sampled_from([100, 300, 500]),
    labels=pod_labels,
    spread_constraints=st.lists(constraints, max_size=2).map(tuple),
)


@given(st.lists(spread_pods, min_size=1, max_size=12), st.integers(1, 3))
def test_batches_over_shards_decide_as_one_pod_after_another_on_one_table(pods, shards):
    nodes = [everything_labelled(number) for number in range(6)]
    service = SelectsPods(
        "Service", "default", "web", LabelSelector((require("app", "In", "web"),))
    )
    build = profiles_of(ClusterFacts((), (service,)))
    table = NodeTable(PodClasses())
    profiles = build(table.classes)
    plain = PlainCycle(table, profiles, TieBreak("first"), name_best=True)
    sharded = LocalShards(shards, build, TieBreak("first"), name_best=True)
    sharded.add_nodes(nodes)
    for facts in nodes:
        plain.table.add_node(facts)

    alone = [
        plain.decide(in_cycle(number, facts, plain.table.classes, profiles))
        for number, facts in enumerate(pods)
    ]
    waiting = [
        in_cycle(number, facts, sharded.cycle.classes, sharded.profiles)
        for number, facts in enumerate(pods)
    ]
    together = []
    while waiting:
        decided = sharded.decide(waiting)
        together += decided
        waiting = waiting[len(decided) :]

    assert [told(each) for each in together] == [told(each) for each in alone]


def told(decision):
    refused = decision.diagnosis.message("") if decision.diagnosis else ""
    return (decision.node_name, decision.feasible, decision.total, decision.best, refused)
