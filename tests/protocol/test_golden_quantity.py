"""The recorded answers of upstream's resource.Quantity."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from roadstead.protocol.quantity import QuantityError, parse_quantity

GOLDEN = Path(__file__).parent.parent / "golden" / "quantity" / "quantity.json.gz"
RECORDED = json.loads(gzip.decompress(GOLDEN.read_bytes()))


def test_parses_prints_and_rounds_as_upstream() -> None:
    sound = [case for case in RECORDED["cases"] if case["ok"]]
    assert len(sound) > 400
    for case in sound:
        quantity = parse_quantity(case["in"])
        answer = {
            "string": str(quantity),
            "value": str(quantity.value()),
            "milliValue": str(quantity.milli_value()),
            "format": quantity.format,
            "sign": quantity.sign,
        }
        assert answer == {key: case[key] for key in answer}, case


def test_refuses_what_upstream_refuses_with_its_words() -> None:
    broken = [case for case in RECORDED["cases"] if not case["ok"]]
    assert len(broken) > 30
    for case in broken:
        with pytest.raises(QuantityError) as caught:
            parse_quantity(case["in"])
        assert str(caught.value) == case["error"], case


def test_compares_adds_and_subtracts_as_upstream() -> None:
    assert len(RECORDED["arithmetic"]) >= 150
    for case in RECORDED["arithmetic"]:
        left, right = parse_quantity(case["a"]), parse_quantity(case["b"])
        answer = (left.cmp(right), str(left.add(right)), str(left.sub(right)))
        assert answer == (case["cmp"], case["sum"], case["sub"]), case
