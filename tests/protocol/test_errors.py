"""Errors name place, object and reason, and never contain a whole hostile value."""

from __future__ import annotations

import pickle

import pytest

from roadstead.protocol.errors import (
    VALUE_MAX_CHARS,
    IllegalTransitionError,
    InputError,
    RoadsteadError,
    UnsupportedError,
    cut_short,
    printable,
)
from roadstead.protocol.status import (
    SKIP,
    SUCCESS,
    Code,
    Status,
    error,
    unresolvable,
    unschedulable,
)

HOSTILE = ["x" * 10_000, '"' * 1000, "\ud800\n", 10**10_000, -(10**10_000), list(range(10**5))]
HOSTILE += [{}, (), None, 1.5, True, b"x" * 1000, object()]


@pytest.mark.parametrize("value", HOSTILE, ids=lambda value: type(value).__name__)
def test_values_are_cut_short(value: object) -> None:
    assert 0 < len(cut_short(value)) <= VALUE_MAX_CHARS


def test_short_values_are_unchanged() -> None:
    assert cut_short("12x") == '"12x"'
    assert cut_short(7) == "7"
    assert cut_short([1, 2]) == "list of 2"


def test_unknown_parts_are_omitted_and_added_by_outer_calls() -> None:
    bare = InputError("is wrong", field="cpu", value="7")
    assert str(bare) == "cpu: 7 is wrong"
    located = bare.at(source="a.yaml", obj='Pod "p"', field="spec.requests")
    assert str(located) == 'a.yaml: Pod "p": spec.requests.cpu: 7 is wrong'
    assert str(located.at(source="b.yaml", obj="x")) == str(located)
    assert str(InputError("r", field="[0]").at(field="items")) == "items[0]: r"
    assert str(InputError("r").at(field="items")) == "items: r"


def test_an_unsupported_plugin_is_named_even_across_processes() -> None:
    refusal = UnsupportedError("VolumeZone", 'Pod "p"', "spec.volumes")
    assert "VolumeZone" in str(refusal)
    again = pickle.loads(pickle.dumps(refusal))
    assert str(again) == str(refusal)
    assert issubclass(IllegalTransitionError, RoadsteadError)


def test_statuses_have_predicates_for_their_codes() -> None:
    assert SUCCESS.is_success
    assert SKIP.is_skip
    assert not SKIP.is_success
    assert unschedulable("a", "b").message == "a, b"
    assert unschedulable("a").is_rejected
    assert unresolvable("a").is_rejected
    assert not error("a").is_rejected
    assert Status(Code.PENDING).is_rejected
    assert Code.UNSCHEDULABLE_AND_UNRESOLVABLE.upstream_name == "UnschedulableAndUnresolvable"


def test_control_characters_are_escaped_and_line_breaks_kept() -> None:
    text = "a\u001b[2J\u009b1m\r\u202eb\ud800\nc ä…"

    assert printable(text) == "a\\x1b[2J\\x9b1m\\r\\u202eb\\ud800\nc ä…"
    assert printable("plain ä…") == "plain ä…"
