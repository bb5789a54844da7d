"""The recorded answers of upstream's selectors, node affinity and tolerations."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from roadstead.facts.parse_selectors import (
    SelectorError,
    label_selector_string,
    parse_label_selector,
    parse_node_selector,
    parse_preferred_terms,
)
from roadstead.facts.selectors import selector_error
from roadstead.facts.taints import Taint, Toleration
from roadstead.protocol import objects

GOLDEN = Path(__file__).parent.parent / "golden" / "labels" / "labels.json.gz"
CASES = json.loads(gzip.decompress(GOLDEN.read_bytes()))["cases"]


def cases(kind: str) -> list[dict[str, Any]]:
    found = [case for case in CASES if case["kind"] == kind]
    assert found, kind
    return found


def answer_of_label_selector(manifest: dict[str, Any] | None, labels: dict[str, str]) -> Any:
    model = None if manifest is None else objects.LabelSelector.read(manifest)
    try:
        selector = parse_label_selector(model)
    except SelectorError as error:
        return {"error": str(error)}
    answer = {"match": selector is not None and selector.matches(labels)}
    text = label_selector_string(model)
    return answer | {"string": text} if text else answer


def answers_in_any_order_of_labels(manifest: dict[str, Any] | None, labels: dict[str, str]) -> Any:
    whole = answer_of_label_selector(manifest, labels)
    if "error" not in whole or not manifest:
        return [whole]
    pairs = manifest.get("matchLabels", {}).items()
    return [whole] + [answer_of_label_selector({"matchLabels": {k: v}}, labels) for k, v in pairs]


def test_label_selectors_match_print_and_fail_as_upstream() -> None:
    for case in cases("labelSelector"):
        expected = {key: case[key] for key in ("match", "string", "error") if key in case}
        assert expected in answers_in_any_order_of_labels(case["selector"], case["labels"]), case


def test_node_selectors_match_and_fail_as_upstream() -> None:
    for case in cases("nodeSelector"):
        terms = parse_node_selector(objects.NodeSelector.read(case["selector"]))
        matched = any(term.matches(case["labels"], case["nodeName"]) for term in terms)
        error = "" if matched else selector_error(terms)
        assert (matched, error) == (case.get("match", False), case.get("error", "")), case


def test_preferred_terms_score_and_fail_as_upstream() -> None:
    for case in cases("preferredTerms"):
        manifests = [objects.PreferredSchedulingTerm.read(x) for x in case["selector"] or ()]
        terms = parse_preferred_terms(manifests)
        error = selector_error(term for _, term in terms)
        score = sum(w for w, term in terms if term.matches(case["labels"], case["nodeName"]))
        answer = {"error": error} if error else {"score": score}
        assert answer == {key: case[key] for key in ("error", "score") if key in case}, case


def test_tolerations_tolerate_as_upstream() -> None:
    for case in cases("toleration"):
        fields = {key: case["selector"].get(key, "") for key in Toleration.__slots__}
        taint = case["taints"]
        tolerated = Toleration(**fields).tolerates(
            Taint(taint.get("key", ""), taint.get("value", ""), taint.get("effect", ""))
        )
        assert tolerated == case.get("match", False), case


@pytest.mark.parametrize("kind", ["labelSelector", "nodeSelector", "preferredTerms", "toleration"])
def test_every_kind_has_more_than_two_hundred_cases(kind: str) -> None:
    assert len(cases(kind)) > 200
