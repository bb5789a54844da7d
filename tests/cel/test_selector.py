"""The selector as its users see it: results, errors, the cache and the bounds."""

from __future__ import annotations

import pytest

from roadstead.cel.devices import view_device
from roadstead.cel.errors import CelCompileError, CelRunError
from roadstead.cel.limits import COST_MAX, EXPRESSION_MAX_BYTES
from roadstead.cel.selector import compile_selector
from roadstead.facts.devices import AttributeFacts, DeviceFacts
from tests.cel.evaluating import DEVICE, DRIVER, compile_error, evaluate, holds


def test_a_selector_matches_a_device_by_its_attributes() -> None:
    selector = compile_selector('device.attributes["gpu.example.com"].model == "a100"')

    assert selector.matches(DRIVER, DEVICE)
    assert not selector.matches(
        DRIVER, DeviceFacts("d1", (AttributeFacts("model", "string", "t4"),))
    )


def test_names_without_domain_belong_to_the_driver() -> None:
    holds(
        'device.driver == "gpu.example.com"',
        'device.attributes["rack.example.com"].switch == "s1"',
        '!("model" in device.attributes["rack.example.com"])',
        'device.capacity["gpu.example.com"].memory == quantity("40Gi")',
        "device.allowMultipleAllocations",
    )


def test_an_unknown_domain_is_an_empty_map_and_an_unknown_name_an_error() -> None:
    holds(
        'device.attributes["nowhere"].size() == 0',
        '!("nowhere" in device.attributes)',
        "has(device.attributes.nowhere)",
    )
    assert evaluate('device.attributes["nowhere"].model == "x"') == "no such key: model"


def test_a_selector_is_compiled_once() -> None:
    expression = 'device.driver == "compiled.once"'

    assert compile_selector(expression) is compile_selector(expression)


def test_a_selector_that_does_not_compile_fails_each_time_with_an_error_of_its_own() -> None:
    errors = []
    for _ in range(2):
        with pytest.raises(CelCompileError, match="undeclared reference to 'nothing'") as caught:
            compile_selector("nothing == 1")
        errors.append(caught.value)

    assert errors[0] is not errors[1]


def test_a_result_that_is_no_bool_is_an_error() -> None:
    assert compile_error("1 + 1") == "must evaluate to bool or the unknown type, not int"
    attribute = 'device.attributes["gpu.example.com"].'
    prefix = "CEL result of type"

    assert evaluate(f"{attribute}ready") is True
    assert evaluate(f"{attribute}model") == (
        f"{prefix} string could not be converted to bool: "
        "unsupported native conversion from string to 'bool'"
    )
    assert evaluate(f"{attribute}index") == (
        f"{prefix} int could not be converted to bool: "
        "unsupported type conversion from 'int' to bool"
    )
    assert evaluate(f"{attribute}driverVersion") == (
        f"{prefix} kubernetes.Semver could not be converted to bool: "
        "type conversion error from 'Semver' to 'bool'"
    )


@pytest.mark.parametrize(
    ("attribute", "text"),
    [
        (
            AttributeFacts("v", "version", "1.2"),
            "attribute v: parse semantic version: No Major.Minor.Patch elements found",
        ),
        (AttributeFacts("v", "", ""), "attribute v: unsupported attribute value"),
    ],
)
def test_a_wrong_attribute_makes_every_selector_fail(attribute: AttributeFacts, text: str) -> None:
    view = view_device(DRIVER, DeviceFacts("d", (attribute,)))

    with pytest.raises(CelRunError) as caught:
        compile_selector("true").matches_view(view)

    assert str(caught.value) == text


def test_an_expression_longer_than_the_api_allows_is_refused() -> None:
    fitting = f'"{"x" * (EXPRESSION_MAX_BYTES - 8)}" == ""'.replace(' == ""', '!=""')
    too_long = "true" + " " * EXPRESSION_MAX_BYTES

    assert len(fitting) <= EXPRESSION_MAX_BYTES
    assert compile_error(fitting) == ""
    assert "at most 10240 are allowed" in compile_error(too_long)


def test_an_evaluation_ends_at_the_limit_of_costs() -> None:
    selector = compile_selector("lists.range(1000).all(a, lists.range(1000).all(b, a + b >= 0))")

    assert selector.max_cost > COST_MAX
    with pytest.raises(CelRunError) as caught:
        selector.matches(DRIVER, DEVICE)
    assert str(caught.value) == "operation cancelled: actual cost limit exceeded"


def test_no_operator_swallows_the_limit_of_costs() -> None:
    costly = "lists.range(1000).all(a, lists.range(1000).all(b, a + b >= 0))"

    assert "cost limit exceeded" in str(evaluate(f"{costly} || true"))
    assert "cost limit exceeded" in str(evaluate(f"[1].exists(x, {costly}) || true"))


def test_an_evaluation_that_costs_more_than_its_estimate_ends_as_upstream():
    # The estimate leaves out the format's own pattern, which each call reads.
    checks = "lists.range(30000).all(x, !format.date().validate('').hasValue() || true)"
    assert compile_selector(checks).max_cost < COST_MAX

    assert "cost limit exceeded" in str(evaluate(checks))
    assert evaluate(checks.replace("30000", "300")) is True


def test_an_expensive_estimate_is_no_error_if_the_evaluation_is_cheap() -> None:
    selector = compile_selector(
        'device.attributes["gpu.example.com"].?model.orValue("").indexOf("1") == 1'
    )

    assert selector.max_cost > COST_MAX
    assert selector.matches(DRIVER, DEVICE)
