"""Recorded answers of upstream's selectors, preferred terms and tolerations."""

from __future__ import annotations

from collections.abc import Mapping

from roadstead.facts.parse_selectors import (
    SelectorError,
    parse_label_selector,
    parse_node_selector,
    parse_preferred_terms,
)
from roadstead.facts.selectors import selector_error
from roadstead.facts.taints import Taint, Toleration
from roadstead.protocol import objects
from scripts.recordings.cases import mapping
from scripts.recordings.result import Json, differing

_STRING_OPERATORS = {"In": "in", "NotIn": "notin"}
_ANSWERS = ("match", "string", "score", "error")


def check_labels(case: Json) -> tuple[Json, list[str]]:
    """Return our answer for a recorded case of any type, and how it differs."""
    expected = {key: case[key] for key in _ANSWERS if key in case}
    answers = list(_ANSWERS_OF_KIND[str(case["kind"])](case))
    question = {key: value for key, value in case.items() if key not in _ANSWERS}
    if expected in answers:
        return question | expected, []
    return question | answers[0], differing(answers[0], expected)


def _label_selector(case: Json) -> list[Json]:
    """Return one answer, or several if upstream's depends on the random order of a map."""
    manifest, labels = case["selector"], _labels(case)
    whole = _of_label_selector(manifest, labels)
    pairs = mapping(mapping(manifest).get("matchLabels")).items() if "error" in whole else ()
    return [whole, *(_of_label_selector({"matchLabels": {k: v}}, labels) for k, v in pairs)]


def _of_label_selector(manifest: object, labels: Mapping[str, str]) -> Json:
    model = None if manifest is None else objects.LabelSelector.read(manifest)
    try:
        selector = parse_label_selector(model)
    except SelectorError as error:
        return {"error": str(error)}
    answer: Json = {"match": selector is not None and selector.matches(labels)}
    text = label_selector_string(model)
    return answer | {"string": text} if text else answer


def label_selector_string(manifest: objects.LabelSelector | None) -> str:
    """Return the canonical string that upstream's `Selector.String()` prints."""
    if manifest is None:
        return ""
    parts = [(key, f"{key}={value}") for key, value in sorted(manifest.match_labels.items())]
    parts += [(each.key, _expression_string(each)) for each in manifest.match_expressions]
    return ",".join(text for _, text in sorted(parts, key=lambda part: part[0]))


def _expression_string(each: objects.SelectorRequirement) -> str:
    if each.operator == "Exists":
        return each.key
    if each.operator == "DoesNotExist":
        return f"!{each.key}"
    values = ",".join(sorted(each.values or ()))
    return f"{each.key} {_STRING_OPERATORS[each.operator]} ({values})"


def _node_selector(case: Json) -> list[Json]:
    terms = parse_node_selector(objects.NodeSelector.read(case["selector"]))
    matched = any(term.matches(_labels(case), str(case["nodeName"])) for term in terms)
    error = "" if matched else selector_error(terms)
    return [{"match": matched} | ({"error": error} if error else {})]


def _preferred_terms(case: Json) -> list[Json]:
    manifests = case["selector"] or []
    assert isinstance(manifests, list)
    terms = parse_preferred_terms([objects.PreferredSchedulingTerm.read(x) for x in manifests])
    error = selector_error(term for _, term in terms)
    if error:
        return [{"error": error}]
    labels, name = _labels(case), str(case["nodeName"])
    return [{"score": sum(weight for weight, term in terms if term.matches(labels, name))}]


def _toleration(case: Json) -> list[Json]:
    selector, taint = mapping(case["selector"]), mapping(case["taints"])
    fields = {key: str(selector.get(key, "")) for key in Toleration.__slots__}
    parts = (str(taint.get(key, "")) for key in ("key", "value", "effect"))
    return [{"match": Toleration(**fields).tolerates(Taint(*parts))}]


def _labels(case: Json) -> Mapping[str, str]:
    return {key: str(value) for key, value in mapping(case.get("labels")).items()}


_ANSWERS_OF_KIND = {
    "labelSelector": _label_selector,
    "nodeSelector": _node_selector,
    "preferredTerms": _preferred_terms,
    "toleration": _toleration,
}
