import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.facts.parse_selectors import parse_node_selector, parse_preferred_terms
from roadstead.framework.cycle_state import CycleState
from roadstead.framework.plugin import PreFilterResult
from roadstead.protocol import objects
from roadstead.protocol.status import SKIP, SUCCESS, Code, unresolvable
from tests.builders import (
    filter_with,
    hopeless,
    named,
    node,
    node_affinity,
    normalized_with,
    pod,
    prefer,
    require,
    score_with,
    table_of,
    term,
)
from tests.plugins.upstream import matches_affinity, normalize, preferred_score
from tests.plugins.worlds import (
    assert_filters_alike_through_views,
    assert_scores_alike_through_views,
    both,
)
from tests.strategies import clusters, pods

PLUGIN = node_affinity()
NO_MATCH = hopeless("node(s) didn't match Pod's node affinity/selector")
NOT_ENFORCED = hopeless("node(s) didn't match scheduler-enforced node affinity")
SSD, HDD = require("disk", "In", "ssd"), require("disk", "In", "hdd")
DISKS = table_of(
    node("n1", labels={"disk": "ssd", "cores": "8"}),
    node("n2", labels={"disk": "hdd", "cores": "16"}),
    node("n3"),
)


def expression(key, operator, *values):
    return {"key": key, "operator": operator, "values": list(values)}


def enforcing(*expressions, preferred=()):
    """Return the plugin with an added affinity: a required term, and (weight, expression) terms."""
    added = {}
    if expressions:
        required = {"nodeSelectorTerms": [{"matchExpressions": list(expressions)}]}
        added["requiredDuringSchedulingIgnoredDuringExecution"] = required
    if preferred:
        added["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": weight, "preference": {"matchExpressions": [each]}}
            for weight, each in preferred
        ]
    return node_affinity(**added)


def wanting(*terms, **facts):
    return pod(required_node_terms=terms, **facts)


def preferring(*terms):
    return pod(preferred_node_terms=terms)


def pre_filtered(facts, plugin=PLUGIN):
    return plugin.pre_filter(CycleState(3), DISKS.classes.pod_class(facts), DISKS)


def narrowed(*terms):
    return pre_filtered(wanting(*terms)).node_names


def test_a_node_selector_must_match_every_label():
    assert filter_with(PLUGIN, pod(node_selector={"disk": "ssd"}), DISKS) == [
        None,
        NO_MATCH,
        NO_MATCH,
    ]
    both_labels = pod(node_selector={"disk": "ssd", "cores": "16"})
    assert filter_with(PLUGIN, both_labels, DISKS) == [NO_MATCH] * 3


def test_one_required_term_must_match():
    wanted = wanting(term(SSD), term(require("disk", "DoesNotExist")))

    assert filter_with(PLUGIN, wanted, DISKS) == [None, NO_MATCH, None]


def test_every_expression_of_a_term_must_match():
    wanted = wanting(term(SSD, require("cores", "Gt", "8")))

    assert filter_with(PLUGIN, wanted, DISKS) == [NO_MATCH] * 3


def test_selector_and_affinity_must_both_match():
    wanted = wanting(term(require("disk", "Exists")), node_selector={"cores": "16"})

    assert filter_with(PLUGIN, wanted, DISKS) == [NO_MATCH, None, NO_MATCH]


@pytest.mark.parametrize("terms", [(), (term(),), (term(SSD, error="does not parse"),)])
def test_no_terms_and_empty_or_invalid_terms_match_nothing(terms):
    assert filter_with(PLUGIN, wanting(*terms), DISKS) == [NO_MATCH] * 3


def test_an_invalid_term_does_not_affect_the_others():
    wanted = wanting(term(SSD, error="does not parse"), term(HDD))

    assert filter_with(PLUGIN, wanted, DISKS) == [NO_MATCH, None, NO_MATCH]


def test_pre_filter_skips_a_pod_without_requirements():
    assert pre_filtered(pod()).status == SKIP
    assert pre_filtered(preferring(prefer(1, term(SSD)))).status == SKIP
    assert pre_filtered(pod(node_selector={"disk": "ssd"})) == PreFilterResult()
    assert pre_filtered(pod(), enforcing(expression("disk", "Exists"))) == PreFilterResult()


def test_pre_filter_selects_no_nodes_by_labels_or_without_terms():
    assert pre_filtered(wanting(term(SSD))) == PreFilterResult()
    assert pre_filtered(wanting()) == PreFilterResult()


def test_pre_filter_selects_the_names_of_all_terms():
    assert narrowed(named("n1")) == {"n1"}
    assert narrowed(named("n1"), named("n9")) == {"n1", "n9"}


def test_one_term_without_names_allows_all_nodes():
    assert narrowed(named("n1"), term(SSD)) is None
    assert narrowed(term(fields=[require("metadata.name", "NotIn", "n1")])) is None


def test_names_in_one_term_are_intersected():
    fields = [require("metadata.name", "In", name) for name in ("n1", "n2")]
    assert narrowed(term(fields=fields), named("n3")) == {"n3"}
    assert narrowed(term(fields=[fields[0], fields[0]])) == {"n1"}


def test_contradictory_terms_reject_the_pod():
    fields = [require("metadata.name", "In", name) for name in ("n1", "n2")]

    assert pre_filtered(wanting(term(fields=fields))) == PreFilterResult(
        unresolvable("pod affinity terms conflict")
    )


def test_names_of_an_invalid_term_select_nodes_too():
    broken = term(SSD, fields=[require("metadata.name", "In", "n1")], error="does not parse")

    assert narrowed(broken) == {"n1"}
    assert filter_with(PLUGIN, wanting(broken), DISKS) == [NO_MATCH] * 3


def test_the_profile_can_add_an_affinity():
    plugin = enforcing(expression("disk", "Exists"))

    assert filter_with(plugin, pod(), DISKS) == [None, None, NOT_ENFORCED]
    assert filter_with(plugin, pod(node_selector={"disk": "ssd"}), DISKS) == [
        None,
        NO_MATCH,
        NOT_ENFORCED,
    ]
    assert filter_with(enforcing(expression("disk", "NotIn", "x")), pod(), DISKS) == [None] * 3


def test_weights_of_matching_preferred_terms_are_summed():
    wanted = preferring(
        prefer(10, term(SSD)), prefer(5, term(require("cores", "Exists"))), prefer(3, named("n3"))
    )

    assert score_with(PLUGIN, wanted, DISKS) == [15, 5, 3]
    assert normalized_with(PLUGIN, wanted, DISKS) == [100, 33, 20]


def test_an_empty_preferred_term_matches_nothing():
    assert score_with(PLUGIN, preferring(prefer(10, term())), DISKS) == [0, 0, 0]
    assert normalized_with(PLUGIN, preferring(prefer(10, term())), DISKS) == [0, 0, 0]


def test_added_preferences_apply_to_every_pod():
    plugin = enforcing(preferred=[(7, expression("disk", "In", "hdd"))])

    assert score_with(plugin, pod(), DISKS) == [0, 7, 0]
    assert score_with(plugin, preferring(prefer(10, term(SSD))), DISKS) == [10, 7, 0]
    assert filter_with(plugin, pod(), DISKS) == [None] * 3


def test_pre_score_skips_a_pod_without_preferences():
    assert score_with(PLUGIN, pod(), DISKS) is None
    assert score_with(enforcing(expression("disk", "Exists")), pod(), DISKS) is None


def pre_scored(*terms):
    return PLUGIN.pre_score(CycleState(3), DISKS.classes.pod_class(preferring(*terms)), DISKS, None)


def test_an_invalid_preferred_term_is_an_error_of_the_cycle():
    broken = [term(SSD, error=f"bad {which}") for which in ("one", "two", "one")]
    status = pre_scored(*(prefer(1, each) for each in broken))

    assert status.code is Code.ERROR
    assert status.message == "[bad one, bad two]"
    assert pre_scored(prefer(1, broken[0]), prefer(1, term(HDD))).message == "bad one"


def test_a_preferred_term_of_weight_zero_is_not_read():
    assert pre_scored(prefer(0, term(SSD, error="bad"))) is SUCCESS


def test_bounds_that_are_not_label_values_are_invalid():
    selector = objects.NodeSelector.model_validate(
        {"nodeSelectorTerms": [{"matchExpressions": [expression("cores", "Gt", "-5")]}]}
    )
    preferred = objects.PreferredSchedulingTerm.model_validate(
        {"weight": 1, "preference": {"matchExpressions": [expression("cores", "Gt", "-5")]}}
    )
    ((weight, soft),) = parse_preferred_terms([preferred])

    assert filter_with(PLUGIN, wanting(*parse_node_selector(selector)), DISKS) == [NO_MATCH] * 3
    assert pre_scored(prefer(weight, soft)).message.startswith(
        '[0].matchExpressions[0].values[0][cores]: Invalid value: "-5": a valid label must be'
    )


@given(clusters, pods)
def test_filtering_equals_upstreams(cluster, wanted):
    table, nodes = both(cluster)

    assert filter_with(PLUGIN, wanted, table) == [
        None if matches_affinity(wanted, each) else NO_MATCH for each in nodes
    ]
    assert_filters_alike_through_views(PLUGIN, wanted, table)


@given(clusters, pods)
def test_an_added_affinity_is_checked_first(cluster, wanted):
    table, nodes = both(cluster)
    plugin = enforcing(expression("disk", "In", "ssd", ""))

    enforced = [dict(each.facts.labels).get("disk") in ("ssd", "") for each in nodes]
    matching = [matches_affinity(wanted, each) for each in nodes]
    assert filter_with(plugin, wanted, table) == [
        NOT_ENFORCED if not in_pool else None if fits else NO_MATCH
        for in_pool, fits in zip(enforced, matching, strict=True)
    ]


@given(clusters, pods)
def test_selecting_nodes_by_name_never_loses_a_fitting_node(cluster, wanted):
    _, nodes = both(cluster)
    result = pre_filtered(wanted)

    fitting = {each.facts.name for each in nodes if matches_affinity(wanted, each)}

    if result.status.is_rejected:
        assert not fitting
    assert result.node_names is None or fitting <= result.node_names


@given(clusters.filter(bool), pods, st.booleans())
def test_scores_equal_upstreams(cluster, wanted, adds):
    table, nodes = both(cluster)
    plugin = enforcing(preferred=[(7, expression("disk", "In", "hdd"))]) if adds else PLUGIN
    terms = [(each.weight, each.term) for each in wanted.preferred_node_terms]
    terms += [(7, term(HDD))] if adds else []

    raw = [preferred_score(terms, each) for each in nodes] if terms else None

    assert score_with(plugin, wanted, table) == raw
    assert normalized_with(plugin, wanted, table) == (raw and normalize(raw, reverse=False))
    assert_scores_alike_through_views(plugin, wanted, table)
