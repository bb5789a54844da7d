"""The recorded answers of upstream's selectors, node affinity and tolerations."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from scripts.recordings.label_cases import check_labels

GOLDEN = Path(__file__).parent.parent / "golden" / "labels" / "labels.json.gz"
CASES = json.loads(gzip.decompress(GOLDEN.read_bytes()))["cases"]


@pytest.mark.parametrize("kind", ["labelSelector", "nodeSelector", "preferredTerms", "toleration"])
def test_selectors_match_score_print_and_fail_like_upstream(kind: str) -> None:
    cases = [case for case in CASES if case["kind"] == kind]

    assert len(cases) > 200
    for case in cases:
        assert check_labels(case)[1] == [], case
