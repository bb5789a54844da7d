"""Recorded answers of upstream's resource.Quantity: texts, and pairs of them."""

from __future__ import annotations

from roadstead.protocol.quantity import QuantityError, parse_quantity
from scripts.recordings.result import Json, differing

_NOT_COMPARED = frozenset({"approxFloat64"})


def check_quantity(case: Json) -> tuple[Json, list[str]]:
    """Return our parsed quantity of a text, and how it differs."""
    text = case["in"]
    assert isinstance(text, str)
    ours: Json = {"in": text}
    try:
        quantity = parse_quantity(text)
    except QuantityError as error:
        # Upstream records the sign 0 for a text that is not a quantity.
        ours |= {"ok": False, "error": str(error), "sign": 0}
    else:
        ours |= {
            "ok": True,
            "string": str(quantity),
            "value": str(quantity.value()),
            "milliValue": str(quantity.milli_value()),
            "format": quantity.format,
            "sign": quantity.sign,
        }
    return ours, differing(ours, {k: v for k, v in case.items() if k not in _NOT_COMPARED})


def check_arithmetic(case: Json) -> tuple[Json, list[str]]:
    """Return our comparison, sum and difference of two texts, and how they differ."""
    left, right = parse_quantity(str(case["a"])), parse_quantity(str(case["b"]))
    ours: Json = {
        "a": case["a"],
        "b": case["b"],
        "cmp": left.cmp(right),
        "sum": str(left.add(right)),
        "sub": str(left.sub(right)),
    }
    return ours, differing(ours, case)
