"""The checker's types and errors, and the arithmetic of estimates."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.cel.checker import check
from roadstead.cel.declarations import FUNCTIONS
from roadstead.cel.estimates import UINT64_MAX, Estimate, fixed
from roadstead.cel.parser import parse
from roadstead.cel.selector import compile_selector
from roadstead.cel.types import DYN, INT, STRING, list_of, map_of, param, read_type
from roadstead.cel.unify import assign, is_equivalent, most_general, substitute
from tests.cel.evaluating import compile_error

A = param("A")


@pytest.mark.parametrize(
    ("expression", "type_"),
    [
        ("1 + 2", "int"),
        ("[1, 2]", "list(int)"),
        ("[]", "list(dyn)"),
        ("{'a': [1.0]}", "map(string, list(double))"),
        ("[1].map(x, string(x))", "list(string)"),
        ("optional.of(1)", "optional_type(int)"),
        ("device", "kubernetes.DRADevice"),
        ("device.attributes['a'].b", "google.protobuf.Any"),
        ("device.capacity['a'].b", "kubernetes.Quantity"),
        ("type(1)", "type(int)"),
        ("{'a': 1}.transformMap(k, v, v > 0)", "map(string, bool)"),
        ("ip('::1')", "net.IP"),
        ("cel.bind(x, 1u, x)", "uint"),
        ("'a'.split('')", "list(string)"),
        ("null", "null_type"),
    ],
)
def test_types_are_deduced(expression: str, type_: str) -> None:
    root = parse(expression)

    assert check(root) == []
    assert str(root.type) == type_


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("nothing", "undeclared reference to 'nothing' (in container '')"),
        ("'a'.nothing()", "undeclared reference to 'nothing' (in container '')"),
        ("device.nothing", "undefined field 'nothing'"),
        ("'a'.b", "type 'string' does not support field selection"),
        ("1 + 'a'", "found no matching overload for '_+_' applied to '(int, string)'"),
        ("1 && true", "expected type 'bool' but found 'int'"),
        ("(1).all(x, true)", "expression of type 'int' cannot be range of a comprehension"),
        ("[1, 'a'] == []", "expected type 'int' but found 'string'"),
        ("{1: 2, 'a': 3} == {}", "expected type 'int' but found 'string'"),
        ("[?1] == []", "expected type 'optional_type(int)' but found 'int'"),
        ("duration('x') == duration('1s')", "invalid duration argument"),
        ("timestamp('x') == timestamp(0)", "invalid timestamp argument"),
        ("'%d'.format(['a']) == ''", "decimal clause can only be used on integers"),
        ("'%s'.format([1, 2]) == ''", "too many arguments supplied to string.format"),
    ],
)
def test_an_ill_typed_expression_is_an_error(expression: str, text: str) -> None:
    assert text in compile_error(expression)


def test_a_parameter_is_bound_to_the_most_general_type() -> None:
    bindings = assign({}, [(list_of(INT), list_of(A)), (DYN, A)])

    assert bindings is not None
    assert substitute(bindings, A, is_final=True) == DYN
    assert most_general(list_of(DYN), list_of(INT)) == list_of(DYN)


def test_a_type_is_never_a_part_of_itself() -> None:
    assert assign({}, [(list_of(A), A)]) is None


def test_unbound_parameters_become_dyn_in_the_end() -> None:
    assert substitute({}, map_of(A, STRING), is_final=True) == map_of(DYN, STRING)
    assert is_equivalent(list_of(A), list_of(param("B")))


def test_notations_of_types_are_read() -> None:
    assert read_type("map(string,list(int))") == map_of(STRING, list_of(INT))
    assert sum(map(len, FUNCTIONS.values())) > 300


numbers = st.one_of(st.integers(0, 100), st.integers(0, UINT64_MAX))
estimates = st.builds(Estimate, numbers, numbers)


@given(estimates, estimates, st.floats(0, 10))
def test_estimates_never_leave_64_bits(one: Estimate, other: Estimate, factor: float) -> None:
    for result in (one.plus(other), one.times(other), one.scaled(factor), one.union(other)):
        assert 0 <= result.low <= UINT64_MAX
        assert 0 <= result.high <= UINT64_MAX


def test_costs_are_rounded_up() -> None:
    assert fixed(11).scaled(0.1) == fixed(2)
    assert fixed(UINT64_MAX).plus(fixed(1)) == fixed(UINT64_MAX)
    assert fixed(UINT64_MAX).scaled(0.1).high == 1844674407370955264


@pytest.mark.parametrize(
    ("expression", "cost"),
    [
        ("true", 0),
        ("1 == 1", 1),
        ("device.driver == 'a'", 3),
        ("device.attributes['a'].b == 5", 5),
        ("device.attributes.exists(k, k == 'a')", 195),
        ("device.attributes['a'].?b.orValue(true)", 5),
        ("type(1) == int", 1844674407370955266),
        ("lists.range(10).size() == 10", 23),
    ],
)
def test_costs_are_estimated(expression: str, cost: int) -> None:
    assert compile_selector(expression).max_cost == cost
