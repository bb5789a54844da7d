"""The recorded answers of upstream's resource.Quantity."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from scripts.recordings.quantity_cases import check_arithmetic, check_quantity

GOLDEN = Path(__file__).parent.parent / "golden" / "quantity" / "quantity.json.gz"
RECORDED = json.loads(gzip.decompress(GOLDEN.read_bytes()))


def test_quantities_are_parsed_printed_and_rounded_like_upstream() -> None:
    sound = [case for case in RECORDED["cases"] if case["ok"]]

    assert len(sound) > 400
    for case in sound:
        assert check_quantity(case)[1] == [], case


def test_quantities_that_upstream_refuses_are_refused_with_its_message() -> None:
    broken = [case for case in RECORDED["cases"] if not case["ok"]]

    assert len(broken) > 30
    for case in broken:
        assert check_quantity(case)[1] == [], case


def test_quantities_are_compared_added_and_subtracted_like_upstream() -> None:
    assert len(RECORDED["arithmetic"]) >= 150
    for case in RECORDED["arithmetic"]:
        assert check_arithmetic(case)[1] == [], case
