"""Selectors match and print like upstream's; hostile ones are refused with upstream's message."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.facts.parse_selectors import (
    SelectorError,
    go_quote,
    parse_label_selector,
    parse_node_selector,
    parse_preferred_terms,
)
from roadstead.facts.pod import PodAffinityTerm, SpreadConstraint
from roadstead.facts.selectors import (
    OPERATORS,
    LabelSelector,
    NodeSelectorTerm,
    Requirement,
    join_errors,
    parse_int64,
    selector_error,
)
from roadstead.protocol import objects
from roadstead.protocol.names import label_value_errors, qualified_name_errors
from scripts.recordings.label_cases import label_selector_string

LABELS = st.dictionaries(st.sampled_from("abc"), st.sampled_from(["", "1", "2", "x"]))


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


def label_selector(*expressions: object, **labels: str) -> objects.LabelSelector:
    return objects.LabelSelector.read(
        {"matchLabels": labels, "matchExpressions": list(expressions)}
    )


def refusal(manifest: objects.LabelSelector) -> str:
    with pytest.raises(SelectorError) as caught:
        parse_label_selector(manifest)
    return str(caught.value)


@pytest.mark.parametrize(
    ("operator", "values", "labels", "matches"),
    [
        ("In", ("1", "2"), {"a": "2"}, True),
        ("In", ("1",), {"a": "2"}, False),
        ("In", ("1",), {}, False),
        ("In", ("",), {"a": ""}, True),
        ("NotIn", ("1",), {}, True),
        ("NotIn", ("1",), {"a": "1"}, False),
        ("NotIn", ("1",), {"a": "2"}, True),
        ("Exists", (), {"a": ""}, True),
        ("Exists", (), {}, False),
        ("DoesNotExist", (), {}, True),
        ("DoesNotExist", (), {"a": ""}, False),
        ("Gt", ("1",), {"a": "2"}, True),
        ("Gt", ("2",), {"a": "2"}, False),
        ("Gt", ("1",), {}, False),
        ("Lt", ("3",), {"a": "2"}, True),
        ("Lt", ("2",), {"a": "2"}, False),
        ("Lt", ("3",), {"a": "x"}, False),
        ("Lt", ("x",), {"a": "2"}, False),
        ("Lt", (), {"a": "2"}, False),
        ("Gt", ("1",), {"a": "9223372036854775808"}, False),
        ("Gt", ("1",), {"a": "+7"}, True),
    ],
)
def test_requirements_match(
    operator: str, values: tuple[str, ...], labels: dict[str, str], matches: bool
) -> None:
    assert Requirement("a", operator, values).matches(labels) is matches


@given(LABELS, st.sampled_from("abc"), st.sampled_from(["1", "2", "x"]))
def test_opposite_operators_never_agree(labels: dict[str, str], key: str, value: str) -> None:
    opposites = [("In", "NotIn", (value,)), ("Exists", "DoesNotExist", ())]
    for one, other, values in opposites:
        assert Requirement(key, one, values).matches(labels) != Requirement(
            key, other, values
        ).matches(labels)


@given(LABELS, st.lists(st.sampled_from(["1", "2", "x", ""]), min_size=1))
def test_order_and_repetition_of_a_selector_do_not_matter(
    labels: dict[str, str], values: list[str]
) -> None:
    one = parse_label_selector(label_selector(expression("a", "In", *values), b="1"))
    other = parse_label_selector(
        label_selector(expression("b", "In", "1"), expression("a", "In", *reversed(values * 2)))
    )
    assert one == other
    assert one is not None
    assert one.matches(labels) == (labels.get("a") in values and labels.get("b") == "1")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("007", 7),
        ("-5", -5),
        ("+5", 5),
        ("", None),
        ("1_0", None),
        (" 1", None),
        ("1.5", None),
        ("٣", None),
        ("0x1", None),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("9223372036854775808", None),
        ("9" * 100_000, None),
        ("1\n", None),
    ],
)
def test_integers_are_read_as_go_reads_them(text: str, value: int | None) -> None:
    assert parse_int64(text) == value


def test_field_requirements_read_the_name_and_treat_other_fields_as_empty() -> None:
    assert Requirement("metadata.name", "In", ("n",)).matches_field("n")
    assert not Requirement("metadata.name", "NotIn", ("n",)).matches_field("n")
    assert Requirement("metadata.uid", "NotIn", ("n",)).matches_field("n")
    assert Requirement("metadata.uid", "In", ("",)).matches_field("n")


def test_terms_need_all_their_parts_and_empty_or_invalid_ones_match_nothing() -> None:
    labels, name = {"a": "1"}, "n"
    one, field = Requirement("a", "In", ("1",)), Requirement("metadata.name", "In", ("n",))
    assert NodeSelectorTerm((one,), (field,)).matches(labels, name)
    assert not NodeSelectorTerm((one,), (field,)).matches(labels, "other")
    assert not NodeSelectorTerm((one,), (field,)).matches({}, name)
    assert NodeSelectorTerm((), (field,)).matches(labels, "")
    assert not NodeSelectorTerm().matches(labels, name)
    assert not NodeSelectorTerm((one,), error="x").matches(labels, name)


def test_selectors_are_printed_like_upstream() -> None:
    manifest = label_selector(
        expression("b", "NotIn", "y", "x"),
        expression("a", "Exists"),
        expression("c", "DoesNotExist"),
        expression("d", "In", "z"),
        e="1",
    )
    assert label_selector_string(manifest) == "a,b notin (x,y),!c,d in (z),e=1"
    assert label_selector_string(label_selector()) == ""
    assert label_selector_string(None) == ""


def test_an_absent_selector_matches_nothing_and_an_empty_one_everything() -> None:
    assert parse_label_selector(None) is None
    everything = parse_label_selector(label_selector())
    assert everything == LabelSelector()
    assert everything.matches({})


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("", "name part must be non-empty"),
        ("/x", "prefix part must be non-empty"),
        ("x/", "name part must be non-empty"),
        ("a/b/c", "a qualified name must consist"),
        ("-x", "name part must consist"),
        ("x-", "name part must consist"),
        ("a b", "must consist"),
        ("ü", "must consist"),
        ("x\n", "must consist"),
        ("x" * 64, "no more than 63 characters"),
        ("ü" * 40, "no more than 63 characters"),
        ("UPPER/x", "prefix part a lowercase RFC 1123"),
        ("a..b/x", "prefix part a lowercase"),
        ("a" * 254 + "/x", "no more than 253 characters"),
        ("\ud800", "must consist"),
        ("/" * 100_000, "a qualified name"),
        ("x" * 1_000_000, "no more than"),
        ("a/\x00", "must consist"),
    ],
)
def test_hostile_keys_are_refused(key: str, message: str) -> None:
    assert message in "; ".join(qualified_name_errors(key))
    assert message in refusal(objects.LabelSelector(match_labels={key: "v"}))


@pytest.mark.parametrize("key", ["a", "A_b.c-d", "example.com/x", "a" * 63, "a-b.c/d", "0/0"])
def test_valid_keys_are_accepted(key: str) -> None:
    assert qualified_name_errors(key) == ()


@pytest.mark.parametrize(
    "value",
    ["-x", "x-", "a b", "a/b", "é", "x\n", "y" * 64, "\ud800", "y" * 1_000_000, ".", "\x00"],
)
def test_hostile_values_are_refused(value: str) -> None:
    assert label_value_errors(value)
    assert refusal(objects.LabelSelector(match_labels={"a": value})).startswith("values[0][a]: ")
    term = objects.NodeSelectorTerm.model_construct(
        match_expressions=(objects.SelectorRequirement(key="a", operator="In", values=[value]),),
        match_fields=(),
    )
    (parsed,) = parse_node_selector(objects.NodeSelector(node_selector_terms=(term,)))
    assert parsed.error.startswith("nodeSelectorTerms[0].matchExpressions[0].values[0][a]: ")


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("a", '"a"'),
        ('"', r'"\""'),
        ("\\", r'"\\"'),
        ("\n\t\r\a\b\f\v", r'"\n\t\r\a\b\f\v"'),
        ("\x00\x7f", r'"\x00\x7f"'),
        ("ü€", '"ü€"'),
        ("\u200b", r'"\u200b"'),
        ("\U000e0001", r'"\U000e0001"'),
    ],
)
def test_strings_are_quoted_like_go(text: str, quoted: str) -> None:
    assert go_quote(text) == quoted


def test_lists_of_values_are_printed_like_go_json() -> None:
    manifest = label_selector(expression("a", "Exists", "<x>&", "\u2028"))
    assert 'values: Invalid value: ["\\u003cx\\u003e\\u0026","\\u2028"]: ' in refusal(manifest)


def test_absent_values_are_printed_as_null_and_empty_ones_as_a_list() -> None:
    selector = objects.NodeSelector.read(
        {
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": "a", "operator": "In"}]},
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": []}]},
            ]
        }
    )
    absent, empty = parse_node_selector(selector)
    assert "Invalid value: null" in absent.error
    assert empty.error == (
        "nodeSelectorTerms[1].matchFields[0].values: Invalid value: []: must have one element"
    )
    assert selector_error((absent, empty)).startswith("[nodeSelectorTerms[0]")


@pytest.mark.parametrize("operator", ["", "in", "IN", "=", "Gte", "Equals", "\x00", "x" * 100_000])
def test_unknown_operators_are_refused(operator: str) -> None:
    assert refusal(label_selector(expression("a", operator))).endswith(
        "is not a valid label selector operator"
    )
    term = {
        "matchExpressions": [expression("a", operator)],
        "matchFields": [expression("b", operator)],
    }
    (parsed,) = parse_node_selector(objects.NodeSelector.read({"nodeSelectorTerms": [term]}))
    assert len(parsed.errors) == 2
    assert all("Unsupported value" in error for error in parsed.errors)


def test_a_preferred_term_without_weight_is_not_parsed() -> None:
    broken = {"matchExpressions": [expression("a", "Near")]}
    manifests = [
        objects.PreferredSchedulingTerm.read({"weight": weight, "preference": broken})
        for weight in (0, 5)
    ]
    (_, unparsed), (weight, parsed) = parse_preferred_terms(manifests)
    assert unparsed == NodeSelectorTerm()
    assert weight == 5
    assert parsed.error.startswith("[1].matchExpressions[0].operator: Unsupported value")


def test_errors_are_joined_like_go() -> None:
    assert join_errors([]) == ""
    assert join_errors(["a", "a"]) == "a"
    assert join_errors(["a", "b", "a"]) == "[a, b]"


def test_every_operator_has_its_matcher() -> None:
    assert OPERATORS == ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")


VALUES = st.sampled_from(["", "1", "2", "x"])
EXPRESSIONS = st.one_of(
    st.builds(
        expression,
        st.sampled_from("abc"),
        st.sampled_from(["In", "NotIn"]),
        VALUES,
        VALUES,
    ),
    st.builds(expression, st.sampled_from("abc"), st.sampled_from(["Exists", "DoesNotExist"])),
)
BOUNDS = st.builds(
    expression, st.sampled_from("abc"), st.sampled_from(["Gt", "Lt"]), st.sampled_from(["0", "1"])
)


def matches_plainly(manifest: dict[str, Any], labels: dict[str, str]) -> bool:
    """The rule of one expression, as the API's documentation states it."""
    key, operator, values = manifest["key"], manifest["operator"], manifest["values"]
    if operator in ("Exists", "DoesNotExist"):
        return (key in labels) == (operator == "Exists")
    if operator in ("Gt", "Lt"):
        number = labels.get(key)
        if number is None or number not in ("1", "2"):
            return False
        return int(number) > int(values[0]) if operator == "Gt" else int(number) < int(values[0])
    return (labels.get(key) in values) == (operator == "In")


@given(st.lists(EXPRESSIONS, max_size=3), LABELS, LABELS)
def test_a_selector_matches_labels_that_meet_all_its_parts(
    expressions: list[dict[str, Any]], wanted: dict[str, str], labels: dict[str, str]
) -> None:
    found = parse_label_selector(label_selector(*expressions, **wanted))

    assert found is not None
    assert found.matches(labels) == (
        all(matches_plainly(each, labels) for each in expressions)
        and wanted.items() <= labels.items()
    )


@given(
    st.lists(st.lists(st.one_of(EXPRESSIONS, BOUNDS), min_size=1, max_size=2), max_size=3),
    LABELS,
)
def test_a_node_is_selected_by_any_term_whose_expressions_all_match(
    terms: list[list[dict[str, Any]]], labels: dict[str, str]
) -> None:
    manifest = {"nodeSelectorTerms": [{"matchExpressions": each} for each in terms]}

    found = parse_node_selector(objects.NodeSelector.read(manifest))

    assert [each.matches(labels, "n") for each in found] == [
        all(matches_plainly(each, labels) for each in term) for term in terms
    ]


@given(LABELS, LABELS, st.lists(st.sampled_from("abc"), max_size=2, unique=True))
def test_keys_to_match_narrow_a_spread_constraint_to_pods_that_agree(
    own: dict[str, str], other: dict[str, str], keys: list[str]
) -> None:
    """Only keys that the pod itself has narrow: upstream ignores the others."""
    constraint = SpreadConstraint(
        "zone", 1, "DoNotSchedule", LabelSelector(), 1, "Honor", "Ignore", tuple(keys)
    )

    found = constraint.effective_selector(own)

    assert found is not None
    assert found.matches(own), "the pod counts itself"
    assert found.matches(other) == all(other.get(key) == own[key] for key in keys if key in own)
    assert constraint.selector == LabelSelector(), "the constraint as written is unchanged"


TERM = PodAffinityTerm("zone", LabelSelector(), ("prod",), None)


@pytest.mark.parametrize(
    ("selector", "namespaces", "chosen", "namespace", "matches"),
    [
        (LabelSelector(), ("prod",), None, "prod", True),
        (LabelSelector(), ("prod",), None, "dev", False),
        (LabelSelector(), (), None, "prod", False),
        (LabelSelector(), (), LabelSelector(), "dev", True),
        (LabelSelector(), ("prod",), LabelSelector((Requirement("team", "Exists"),)), "dev", True),
        (LabelSelector(), (), LabelSelector((Requirement("other", "Exists"),)), "dev", False),
        (None, ("prod",), LabelSelector(), "prod", False),
        (LabelSelector((Requirement("app", "Exists"),)), ("prod",), None, "prod", False),
    ],
)
def test_a_term_matches_pods_of_named_or_selected_namespaces(
    selector: LabelSelector | None,
    namespaces: tuple[str, ...],
    chosen: LabelSelector | None,
    namespace: str,
    matches: bool,
) -> None:
    term = replace(TERM, selector=selector, namespaces=namespaces, namespace_selector=chosen)

    assert term.matches_labels(namespace, {}, {"team": "a"}) is matches
