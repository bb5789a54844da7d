import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.config.plugin_args import InterPodAffinityArgs
from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.pod import PodAffinityTerm
from roadstead.facts.selectors import LabelSelector
from roadstead.framework.cycle_state import CycleState
from roadstead.framework.plugin import Extremes, Handle, Reads
from roadstead.plugins import inter_pod_affinity
from roadstead.plugins.inter_pod_affinity import InterPodAffinity, PodCounts
from roadstead.plugins.inter_pod_counts import InterPodCounts
from roadstead.protocol.status import SKIP, Code, unresolvable
from tests.builders import (
    found_before_filter,
    found_before_score,
    is_affected,
    node,
    pairs,
    pod,
    put,
    require,
    table_of,
)
from tests.inside import objects_in
from tests.plugins import affinity_upstream as upstream
from tests.plugins.affinity_upstream import NOT_AWAY, NOT_NEAR, NOT_WANTED, Affinity
from tests.plugins.upstream import NodeInfo

HOST, ZONE, RACK = "host", "zone", "rack"
NAMESPACES = {"default": {"team": "a"}, "prod": {"team": "b", "tier": "1"}, "bare": {}}
EVERYTHING = LabelSelector()


def select(*requirements):
    return LabelSelector(requirements)


def app(*names):
    return select(require("app", "In", *names))


def aff(selector=None, key=HOST, *, spaces=("default",), choose=None, weight=0, error=""):
    return PodAffinityTerm(key, selector, spaces, choose, weight, error)


def near(*terms, **facts):
    return pod(pod_affinity=terms, **facts)


def away(*terms, **facts):
    return pod(pod_anti_affinity=terms, **facts)


def liking(*terms, **facts):
    return pod(preferred_pod_affinity=terms, **facts)


def disliking(*terms, **facts):
    return pod(preferred_pod_anti_affinity=terms, **facts)


def web(**facts):
    return pod(labels={"app": "web"}, **facts)


def place(name, *pods, zone=None, **labels):
    """Return a node with its own name as host, and the pods on it."""
    return node(name, labels={HOST: name} | labels | ({ZONE: zone} if zone else {})), pods


class Asked:
    """A table and the plugin."""

    def __init__(self, world, args=None, namespaces=NAMESPACES):
        cluster = ClusterFacts(tuple((k, pairs(v)) for k, v in namespaces.items()))
        self.table = table_of(*(facts for facts, _ in world))
        for facts, pods in world:
            put(self.table, facts.name, *pods)
        handle = Handle(self.table.classes, cluster)
        self.plugin = InterPodAffinity(args or InterPodAffinityArgs(), handle)

    def ask(self, facts):
        """Return PreFilter's status, {node: refusal}, PreScore's status, {node: raw}, scores."""
        plugin, table = self.plugin, self.table
        pod_class, state = table.classes.pod_class(facts), CycleState(len(table))
        filtered = self._phase(
            plugin.pre_filter(state, pod_class, table).status, state, pod_class, refusals
        )
        state = CycleState(len(table), state)
        status = plugin.pre_score(state, pod_class, table, lambda: np.ones(len(table), dtype=bool))
        scored = self._phase(status, state, pod_class, raw_scores)
        return (*filtered, *scored, self._normalized(pod_class, list(scored[1].values())))

    def _phase(self, status, state, pod_class, row_answers):
        if not status.is_success:
            return status, {}
        answers = row_answers(self.plugin, state, pod_class, self.table)
        return status, dict(zip(self.table.names, answers, strict=True))

    def _normalized(self, pod_class, raw):
        if not raw:
            return []
        scores = np.array(raw, dtype=np.int64)
        return self.plugin.normalize(CycleState(1), pod_class, scores, Extremes.of(scores)).tolist()


def refusals(plugin, state, pod_class, table):
    result = plugin.filter(state, pod_class, table)
    if result.codes is None:
        return [None] * len(table)
    reasons = [None, *(status.reasons[0] for status in result.statuses)]
    return [reasons[code] for code in result.codes.tolist()]


def raw_scores(plugin, state, pod_class, table):
    return plugin.score(state, pod_class, table).tolist()


def refused(world, facts, **options):
    """Return {node: reason} of the refused nodes."""
    _, message, *_ = Asked(world, **options).ask(facts)
    return {name: reason for name, reason in message.items() if reason}


def scored(world, facts, **options):
    """Return {node: raw score}, or None if PreScore skipped."""
    *_, status, raw, _ = Asked(world, **options).ask(facts)
    return None if status.is_skip else raw


TWO_ZONES = [place("n1", web(), zone="a"), place("n2", zone="a"), place("n3", zone="b")]


def test_a_pod_fits_where_its_affinity_term_matches_a_pod():
    assert refused(TWO_ZONES, near(aff(app("web"), ZONE))) == {"n3": NOT_NEAR}
    assert refused(TWO_ZONES, near(aff(app("web"), HOST))) == {"n2": NOT_NEAR, "n3": NOT_NEAR}


def test_a_pod_does_not_fit_where_its_anti_affinity_term_matches_a_pod():
    assert refused(TWO_ZONES, away(aff(app("web"), ZONE))) == {"n1": NOT_AWAY, "n2": NOT_AWAY}


def test_a_pod_does_not_fit_where_anti_affinity_of_a_running_pod_matches_it():
    lonely = away(aff(app("web"), ZONE))
    world = [place("n1", lonely, zone="a"), place("n2", zone="a"), place("n3", zone="b")]

    assert refused(world, web()) == {"n1": NOT_WANTED, "n2": NOT_WANTED}
    assert refused(world, pod(labels={"app": "db"})) == {}


def test_affinity_is_checked_before_anti_affinity_and_then_that_of_running_pods():
    lonely = away(aff(app("new")), labels={"app": "web"})
    new = pod(
        labels={"app": "new"},
        pod_affinity=(aff(app("web")),),
        pod_anti_affinity=(aff(app("db")),),
    )
    world = [
        place("n1", pod(labels={"app": "db"})),
        place("n2", lonely, pod(labels={"app": "db"})),
        place("n3", lonely),
        place("n4", web()),
    ]

    assert refused(world, new) == {"n1": NOT_NEAR, "n2": NOT_AWAY, "n3": NOT_WANTED}


def test_codes_show_where_preemption_can_help():
    asked = Asked([place("n1")])
    plugin, table = asked.plugin, asked.table
    pod_class = table.classes.pod_class(near(aff(app("web"))))
    state = CycleState(1)
    plugin.pre_filter(state, pod_class, table)

    codes = [status.code for status in plugin.filter(state, pod_class, table).statuses]

    assert codes == [Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.UNSCHEDULABLE, Code.UNSCHEDULABLE]


def test_one_pod_must_match_all_affinity_terms():
    asking = near(aff(app("web"), ZONE), aff(select(require("tier", "Exists")), HOST))
    both = pod(labels={"app": "web", "tier": "1"})
    apart = [place("n1", web(), pod(labels={"tier": "1"}), zone="a"), place("n2", zone="a")]
    together = [place("n1", both, zone="a"), place("n2", zone="a")]

    assert refused(apart, asking) == {"n1": NOT_NEAR, "n2": NOT_NEAR}
    assert refused(together, asking) == {"n2": NOT_NEAR}


def test_one_matching_anti_affinity_term_is_enough():
    asking = away(aff(app("web"), HOST), aff(app("db"), ZONE))
    world = [
        place("n1", web()),
        place("n2", pod(labels={"app": "db"}), zone="a"),
        place("n3", zone="a"),
        place("n4"),
    ]

    assert set(refused(world, asking)) == {"n1", "n2", "n3"}


def test_the_first_pod_of_a_series_fits_everywhere_with_the_keys():
    first = near(aff(app("web"), ZONE), labels={"app": "web"})
    world = [place("n1", zone="a"), place("n2")]

    assert refused(world, first) == {"n2": NOT_NEAR}


def test_the_exception_for_the_first_pod_ends_once_any_pod_matches():
    second = near(aff(app("web"), ZONE), labels={"app": "web"})

    assert refused(TWO_ZONES, second) == {"n3": NOT_NEAR}


def test_a_match_on_a_node_without_the_key_does_not_count():
    first = near(aff(app("web"), ZONE), labels={"app": "web"})
    world = [place("n1", web()), place("n2", zone="a")]

    assert refused(world, first) == {"n1": NOT_NEAR}


def test_a_pod_that_does_not_match_its_own_terms_is_not_a_first_pod():
    assert refused([place("n1", zone="a")], near(aff(app("web"), ZONE))) == {"n1": NOT_NEAR}
    other_space = near(aff(app("web"), spaces=("prod",)), labels={"app": "web"})
    assert refused([place("n1")], other_space) == {"n1": NOT_NEAR}


def test_anti_affinity_does_not_apply_to_a_node_without_the_key():
    world = [place("n1", web()), place("n2", web(), zone="a")]

    assert refused(world, away(aff(app("web"), ZONE))) == {"n2": NOT_AWAY}


def test_several_terms_of_one_key_are_one_topology():
    asking = near(aff(app("web"), ZONE), aff(select(require("app", "Exists")), ZONE))

    assert refused(TWO_ZONES, asking) == {"n3": NOT_NEAR}


@pytest.mark.parametrize("selector", [None, app("db")])
def test_an_absent_or_unmatched_selector_matches_no_pod(selector):
    assert refused(TWO_ZONES, away(aff(selector, ZONE))) == {}


def test_pods_of_other_namespaces_do_not_match():
    world = [place("n1", web(namespace="prod")), place("n2", web())]

    assert refused(world, away(aff(app("web")))) == {"n2": NOT_AWAY}
    assert refused(world, away(aff(app("web"), spaces=("prod",)))) == {"n1": NOT_AWAY}


@pytest.mark.parametrize(
    ("choose", "meant"),
    [
        (select(require("team", "In", "b")), {"prod"}),
        (EVERYTHING, {"default", "prod", "bare", "unknown"}),
        (None, set()),
        (select(require("team", "Exists")), {"default", "prod"}),
        # Upstream 1.34 evaluates a new pod's selector once more, with no labels at all.
        (select(require("tier", "DoesNotExist")), {"default", "prod", "bare", "unknown"}),
        (select(require("team", "NotIn", "b")), {"default", "prod", "bare", "unknown"}),
    ],
)
def test_a_new_pods_namespace_selector_selects_namespaces_by_labels(choose, meant):
    world = [place(name, web(namespace=name)) for name in ("default", "prod", "bare", "unknown")]

    assert set(refused(world, away(aff(app("web"), spaces=(), choose=choose)))) == meant


@pytest.mark.parametrize(
    ("choose", "meant"),
    [
        (select(require("team", "In", "b")), {"prod"}),
        (EVERYTHING, {"default", "prod", "bare", "unknown"}),
        (None, set()),
        (select(require("tier", "DoesNotExist")), {"default", "bare", "unknown"}),
        (select(require("team", "NotIn", "b")), {"default", "bare", "unknown"}),
    ],
)
def test_a_running_pods_namespace_selector_is_matched_with_the_new_pods_namespace(choose, meant):
    world = [place("n1", away(aff(app("web"), spaces=(), choose=choose)))]

    found = {
        name
        for name in ("default", "prod", "bare", "unknown")
        if refused(world, web(namespace=name))
    }

    assert found == meant


def test_terminating_pods_count():
    world = [place("n1", web(is_terminating=True))]

    assert refused(world, away(aff(app("web")))) == {"n1": NOT_AWAY}


def test_filtering_is_skipped_without_terms():
    lonely = away(aff(app("db")))
    for world in ([place("n1")], [place("n1", lonely)], [place("n1", liking(aff(EVERYTHING)))]):
        status, *_ = Asked(world).ask(web())
        assert status == SKIP


def test_filtering_is_not_skipped_for_unmatched_terms():
    for asking in (near(aff(app("web"))), away(aff(app("web")))):
        status, *_ = Asked([place("n1")]).ask(asking)
        assert status.is_success


def test_an_invalid_term_makes_the_pod_unresolvable():
    asking = pod(pod_affinity=(aff(app("web")), aff(error="bad one")))

    status, *_ = Asked(TWO_ZONES).ask(asking)

    assert status == unresolvable("parsing pod: requiredAffinityTerms: bad one")


def test_every_invalid_group_of_terms_is_reported():
    asking = pod(
        pod_affinity=(aff(error="one"), aff(error="not reported")),
        pod_anti_affinity=(aff(error="two"),),
        preferred_pod_affinity=(aff(error="three", weight=1),),
        preferred_pod_anti_affinity=(aff(error="four", weight=1),),
    )

    status, _, scoring, *_ = Asked(TWO_ZONES).ask(asking)

    message = (
        "[requiredAffinityTerms: one, requiredAntiAffinityTerms: two, "
        "preferredAffinityTerms: three, preferredAntiAffinityTerms: four]"
    )
    assert status == unresolvable(f"parsing pod: {message}")
    assert (scoring.code, scoring.reasons) == (Code.ERROR, (f"failed to parse pod: {message}",))


def test_a_running_pod_loses_only_its_invalid_group_of_terms():
    broken = pod(
        pod_anti_affinity=(aff(app("web")), aff(error="bad")),
        preferred_pod_affinity=(aff(app("web"), weight=7),),
    )
    world = [place("n1", broken)]

    assert refused(world, web()) == {}
    assert scored(world, web()) == {"n1": 7}


def test_preferred_terms_of_the_pod_score_the_domains_of_matching_pods():
    world = [place("n1", web(), web(), zone="a"), place("n2", zone="a"), place("n3", zone="b")]

    assert scored(world, liking(aff(app("web"), ZONE, weight=3))) == {"n1": 6, "n2": 6, "n3": 0}
    assert scored(world, disliking(aff(app("web"), HOST, weight=4))) == {"n1": -8, "n2": 0, "n3": 0}


def test_preferred_terms_of_running_pods_score_for_the_new_pod():
    world = [
        place("n1", liking(aff(app("web"), weight=5))),
        place("n2", disliking(aff(app("web"), weight=2))),
        place("n3", liking(aff(app("db"), weight=9))),
    ]

    assert scored(world, web()) == {"n1": 5, "n2": -2, "n3": 0}


@pytest.mark.parametrize(("weight", "expected"), [(1, {"n1": 1}), (100, {"n1": 100}), (0, None)])
def test_required_affinity_of_running_pods_scores_with_the_configured_weight(weight, expected):
    world = [place("n1", near(aff(app("web"))))]
    args = InterPodAffinityArgs(hard_pod_affinity_weight=weight)

    assert scored(world, web(), args=args) == expected


def test_required_anti_affinity_does_not_score():
    assert scored([place("n1", away(aff(app("web"))))], web()) is None
    assert scored(TWO_ZONES, away(aff(app("web")))) is None


def test_scores_of_several_keys_are_summed():
    asking = liking(aff(app("web"), ZONE, weight=1), aff(app("web"), HOST, weight=10))

    assert scored(TWO_ZONES, asking) == {"n1": 11, "n2": 1, "n3": 0}


def test_preferences_of_running_pods_can_be_ignored_for_pods_without_their_own():
    world = [place("n1", liking(aff(app("web"), weight=5)), near(aff(app("web"))))]
    args = InterPodAffinityArgs(ignore_preferred_terms_of_existing_pods=True)
    own = liking(aff(app("nobody"), weight=1), labels={"app": "web"})

    assert scored(world, web(), args=args) is None
    assert scored(world, own, args=args) == {"n1": 6}


def test_invalid_preferences_do_not_matter_for_pods_without_preferences_if_ignored():
    args = InterPodAffinityArgs(ignore_preferred_terms_of_existing_pods=True)

    *_, status, _, _ = Asked(TWO_ZONES, args=args).ask(near(aff(error="bad")))

    assert status == SKIP


def test_matches_that_cancel_each_other_still_score():
    world = [
        place("n1", liking(aff(app("web"), weight=5)), disliking(aff(app("web"), weight=5))),
        place("n2"),
    ]

    assert scored(world, web()) == {"n1": 0, "n2": 0}


def test_a_preferred_term_of_weight_zero_still_scores():
    assert scored([place("n1", liking(aff(app("web"), weight=0)))], web()) == {"n1": 0}


def test_matches_on_nodes_without_the_key_do_not_score():
    world = [place("n1", liking(aff(app("web"), ZONE, weight=5)))]

    assert scored(world, web()) is None


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ([5, 5], [0, 0]),
        ([0, 1, 3], [0, 33, 100]),
        ([-10, 0, 19], [0, 34, 100]),
        ([-7], [0]),
        # Upstream divides floats before it multiplies: 100 * (29 / 100) is 28.99…
        ([0, 29, 100], [0, 28, 100]),
    ],
)
def test_scores_are_scaled_from_0_to_100_in_floats(raw, expected):
    assert Asked([place("n1")])._normalized(web(), raw) == expected


def test_a_pod_is_affected_by_pods_that_its_terms_match_or_whose_terms_match_it():
    asked = Asked([place("n1")])
    plugin, table = asked.plugin, asked.table

    def affected(facts, placed):
        return is_affected(plugin, table.classes.pod_class(facts), table.classes.pod_class(placed))

    for asking in (near, away, liking, disliking):
        assert affected(asking(aff(app("web"), weight=1)), web())
        assert affected(web(), asking(aff(app("web"), weight=1)))
        assert not affected(asking(aff(app("web"), weight=1)), web(namespace="prod"))
        assert not affected(web(namespace="prod"), asking(aff(app("web"), weight=1)))
    assert not affected(web(), web())
    assert not affected(near(aff(app("web")), aff(app("db"))), web())


def test_terms_without_effect_affect_no_pod():
    args = InterPodAffinityArgs(0, ignore_preferred_terms_of_existing_pods=True)
    asked = Asked([place("n1")], args=args)
    plugin, table = asked.plugin, asked.table
    pod_class = table.classes.pod_class

    assert not is_affected(plugin, pod_class(web()), pod_class(near(aff(app("web")))))
    assert not is_affected(plugin, pod_class(web()), pod_class(liking(aff(app("web"), weight=1))))


def test_the_signature_is_namespace_labels_and_terms():
    plugin = Asked([]).plugin
    term = aff(app("web"), weight=1)

    assert plugin.sign(web()) == plugin.sign(web(cpu=5, priority=3))
    different = [web(), web(namespace="prod"), pod(), near(term), away(term)]
    different += [liking(term), disliking(term)]
    assert len({plugin.sign(each) for each in different}) == len(different)


def test_the_plugin_reads_the_cluster():
    assert InterPodAffinity.reads is Reads.CLUSTER


def test_nothing_is_counted_if_no_term_matches_the_pod():
    asked = Asked([place("n1", web(), near(aff(app("db"))))])
    plugin, table = asked.plugin, asked.table
    pod_class = table.classes.pod_class(web())

    assert found_before_filter(plugin, pod_class, table) is None
    assert found_before_score(plugin, pod_class, table) is None


def test_counts_are_by_key_and_value():
    lonely = away(aff(app("new"), ZONE), aff(app("new"), HOST))
    new = pod(
        labels={"app": "new"},
        pod_affinity=(aff(app("web"), ZONE),),
        pod_anti_affinity=(aff(app("web"), ZONE), aff(app("web"), ZONE)),
    )
    world = [place("n1", web(), web(), zone="a"), place("n2", lonely, web(), zone="b")]
    asked = Asked(world)
    plugin, table = asked.plugin, asked.table

    assert found_before_filter(plugin, table.classes.pod_class(new), table).counts == PodCounts(
        existing_anti={ZONE: {"b": 1}, HOST: {"n2": 1}},
        affinity={ZONE: {"a": 2, "b": 1}},
        anti_affinity={ZONE: {"a": 4, "b": 2}},
    )


def test_a_pod_evaluated_later_gets_all_changes_since():
    asked = Asked([place("n1", web()), place("n2", web())])
    plugin, table = asked.plugin, asked.table
    found_before_filter(plugin, table.classes.pod_class(away(aff(app("web")))), table)
    put(table, "n2", pod(labels={"app": "db"}))
    table.remove_pod("n1", table.classes.pod_class(web()))

    later = table.classes.pod_class(away(aff(app("web", "db"))))

    assert found_before_filter(plugin, later, table).counts.anti_affinity == {HOST: {"n2": 2}}


labels = st.fixed_dictionaries(
    {},
    optional={"app": st.sampled_from(["web", "db"]), "tier": st.sampled_from(["1", "2"])},
)
selectors = st.sampled_from(
    [
        None,
        EVERYTHING,
        app("web"),
        app("web", "db"),
        select(require("tier", "Exists")),
        select(require("tier", "NotIn", "1")),
        select(require("app", "In", "web"), require("tier", "DoesNotExist")),
    ]
)
namespace_selectors = st.sampled_from(
    [
        None,
        None,
        EVERYTHING,
        select(require("team", "In", "b")),
        select(require("team", "NotIn", "b")),
        select(require("tier", "DoesNotExist")),
    ]
)
spaces = st.sampled_from(["default", "prod", "unknown"])
keys = st.sampled_from([HOST, ZONE, ZONE, RACK])


def terms(weights, most=2):
    one = st.builds(
        lambda selector, key, own, choose, weight, error: aff(
            selector, key, spaces=own, choose=choose, weight=weight, error=error
        ),
        selectors,
        keys,
        st.lists(spaces, max_size=2, unique=True).map(lambda each: tuple(sorted(each))),
        namespace_selectors,
        weights,
        st.sampled_from(["", "", "", "", "", "", "", "", "", "bad", "worse"]),
    )
    return st.one_of(st.just(()), st.lists(one, max_size=most).map(tuple))


pods = st.builds(
    pod,
    cpu=st.sampled_from([0, 1]),
    namespace=spaces,
    labels=labels,
    is_terminating=st.booleans(),
    pod_affinity=terms(st.just(0)),
    pod_anti_affinity=terms(st.just(0)),
    preferred_pod_affinity=terms(st.sampled_from([0, 1, 5, 100])),
    preferred_pod_anti_affinity=terms(st.sampled_from([1, 5, 100])),
)
node_labels = st.fixed_dictionaries(
    {},
    optional={
        HOST: st.sampled_from(["h1", "h2", "h3"]),
        ZONE: st.sampled_from(["a", "b"]),
        RACK: st.sampled_from(["a", "r"]),
    },
)
nodes = st.builds(node, name=st.sampled_from([f"n{i}" for i in range(6)]), labels=node_labels)
worlds = st.lists(
    st.tuples(nodes, st.lists(pods, max_size=3)), max_size=5, unique_by=lambda each: each[0].name
)
arguments = st.builds(InterPodAffinityArgs, st.sampled_from([0, 1, 7]), st.booleans())


def expected(world, facts, args):
    """Return the result of `Asked.ask` by upstream's rules."""
    plugin = Affinity(
        NAMESPACES, args.hard_pod_affinity_weight, args.ignore_preferred_terms_of_existing_pods
    )
    pod_classes = [NodeInfo(node_facts, list(on_node)) for node_facts, on_node in world]
    counts, scores = plugin.pre_filter(facts, pod_classes), plugin.pre_score(facts, pod_classes)
    refusals = {}
    if not isinstance(counts, str):
        refusals = {
            pod_class.facts.name: plugin.filter(facts, pod_class, counts)
            for pod_class in pod_classes
        }
        counts = ""
    raw = {}
    if not isinstance(scores, str):
        raw = {pod_class.facts.name: upstream.score(scores, pod_class) for pod_class in pod_classes}
        scores = ""
    return counts, refusals, scores, raw, upstream.normalize(list(raw.values())) if raw else []


def worded(answer):
    """Return a result of `Asked.ask` with its statuses in the form of `expected`."""
    filtering, refusals, scoring, raw, normalized = answer
    texts = [
        "" if each.is_success else upstream.SKIP if each.is_skip else each.message
        for each in (filtering, scoring)
    ]
    return texts[0], refusals, texts[1], raw, normalized


@given(worlds, pods, arguments)
def test_answers_equal_upstreams(world, facts, args):
    assert worded(Asked(world, args=args).ask(facts)) == expected(world, facts, args)


@given(worlds, pods, pods, arguments)
def test_a_placement_that_does_not_affect_a_pod_changes_no_answer(world, facts, placed, args):
    asked = Asked(world, args=args)
    plugin, table = asked.plugin, asked.table
    before = asked.ask(facts)

    affected = is_affected(plugin, table.classes.pod_class(facts), table.classes.pod_class(placed))
    for name in table.names:
        put(table, name, placed)

    assert affected or asked.ask(facts) == before


@given(worlds.filter(bool), pods, arguments)
def test_a_view_of_some_rows_has_the_answers_of_those_rows(world, facts, args):
    asked = Asked(world, args=args)
    plugin, table = asked.plugin, asked.table
    pod_class, state = table.classes.pod_class(facts), CycleState(len(table))
    rows = np.arange(len(table))[::-2]
    view = table.view(rows)

    if plugin.pre_filter(state, pod_class, table).status.is_success:
        whole = refusals(plugin, state, pod_class, table)
        assert refusals(plugin, state, pod_class, view) == [whole[row] for row in rows]
    part = found_before_filter(plugin, pod_class, view)
    fresh = Asked([world[row] for row in rows], args=args)
    alone, own = fresh.plugin, fresh.table
    assert part == found_before_filter(alone, own.classes.pod_class(facts), own)


changes = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(0, 9), pods),
        st.tuples(st.just("remove"), st.integers(0, 9), st.integers(0, 9)),
        st.tuples(st.just("node"), nodes, st.none()),
        st.tuples(st.just("drop"), st.integers(0, 9), st.none()),
    ),
    max_size=8,
)


def change(table, what, where, which):
    if what == "node":
        (table.update_node if table.has_node(where.name) else table.add_node)(where)
        return
    if not len(table):
        return
    row = where % len(table)
    if what == "add":
        put(table, table.names[row], which)
    elif what == "drop":
        table.remove_node(table.names[row])
    elif table.pods(row):
        on_node = list(table.pods(row))
        table.remove_pod(table.names[row], on_node[which % len(on_node)])


def world_of(table):
    return [
        (table.facts(row), [i.facts for i, n in table.pods(row).items() for _ in range(n)])
        for row in range(len(table))
    ]


@given(worlds, st.lists(pods, min_size=1, max_size=3), changes)
def test_updated_counts_equal_new_counts(world, asking, history):
    asked = Asked(world)
    table = asked.table

    for turn, step in enumerate(history):
        change(table, *step)
        # Not all classes are evaluated each time: some counts fall behind, some start late.
        facts = asking[turn % len(asking)]
        assert asked.ask(facts) == Asked(world_of(table)).ask(facts)


@given(worlds.filter(bool), pods, pods)
def test_overlays_have_their_own_counts_and_leave_the_table_unchanged(world, facts, placed):
    asked = Asked(world)
    plugin, table = asked.plugin, asked.table
    pod_class = table.classes.pod_class(facts)
    before = found_before_filter(plugin, pod_class, table)
    overlay = table.copy_rows(np.arange(len(table)))
    put(overlay, table.names[0], placed)

    in_overlay = found_before_filter(plugin, pod_class, overlay)

    asked = Asked(world_of(overlay))
    fresh, own = asked.plugin, asked.table
    assert in_overlay == found_before_filter(fresh, own.classes.pod_class(facts), own)
    assert found_before_filter(plugin, pod_class, table) == before


def test_a_larger_table_reuses_the_cached_counts():
    asked = Asked([place("n1", web())])
    plugin, table = asked.plugin, asked.table
    pod_class = table.classes.pod_class(away(aff(app("web"))))
    found_before_filter(plugin, pod_class, table)
    larger = table_of(place("n1")[0], place("n2")[0], classes=table.classes)
    put(larger, "n2", web())

    for _ in range(2):
        counted = found_before_filter(plugin, pod_class, larger)
        assert counted is not None
        assert counted.counts.anti_affinity == {HOST: {"n2": 1}}
    put(larger, "n1", web())
    assert found_before_filter(plugin, pod_class, larger).counts.anti_affinity == {
        HOST: {"n1": 1, "n2": 1}
    }


def test_cached_counts_are_bounded_and_dropped_ones_are_recomputed(monkeypatch):
    monkeypatch.setattr(inter_pod_affinity, "MAX_CACHED_NUMBERS", 5)
    asked = Asked([place("n1", web()), place("n2", web())])
    plugin, table = asked.plugin, asked.table
    asking = [away(aff(app("web"), spaces=("default", space))) for space in "abc"]

    for facts in asking * 2:
        counted = found_before_filter(plugin, table.classes.pod_class(facts), table)
        assert counted.counts.anti_affinity == {HOST: {"n1": 1, "n2": 1}}
        assert len(objects_in(plugin, InterPodCounts)) <= 2


def test_pods_that_differ_only_in_requests_share_their_counts():
    asked = Asked([place("n1", web(), web(cpu=5))])
    plugin, table = asked.plugin, asked.table

    for cpu in (1, 2, 3):
        facts = away(aff(app("web")), cpu=cpu)
        counted = found_before_filter(plugin, table.classes.pod_class(facts), table)
        assert counted.counts.anti_affinity == {HOST: {"n1": 2}}

    assert len(objects_in(plugin, InterPodCounts)) == 1


def test_a_table_with_other_classes_is_an_error():
    asked = Asked([])
    plugin, own = asked.plugin, asked.table
    table = table_of(place("n1")[0])

    with pytest.raises(AssertionError, match="other classes"):
        found_before_filter(plugin, own.classes.pod_class(web()), table)
