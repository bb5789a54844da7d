"""Names of objects, labels and namespaces, by upstream's rules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.protocol.names import (
    dns_1035_label_errors,
    dns_label_errors,
    is_label_value,
    is_subdomain,
    label_value_errors,
    subdomain_errors,
)

NEAR_A_NAME = st.text("aZ0-_. é\n", max_size=8) | st.text("a-.", min_size=60, max_size=66)


@given(NEAR_A_NAME)
def test_the_fast_checks_agree_with_the_rules(text: str) -> None:
    assert is_label_value(text) == (not label_value_errors(text))
    assert is_subdomain(text) == (not subdomain_errors(text))


@pytest.mark.parametrize("name", ["a", "a-b", "a.b", "0", "a" * 253, "a-0.b-1.c"])
def test_valid_subdomains_are_accepted(name: str) -> None:
    assert is_subdomain(name)


@pytest.mark.parametrize(
    "name", ["", "A", "-a", "a-", ".a", "a.", "a..b", "a.-b", "a_b", "a/b", "ä", "a\n", "a" * 254]
)
def test_invalid_subdomains_are_refused(name: str) -> None:
    assert not is_subdomain(name)


def test_labels_have_no_dots_and_at_most_63_characters() -> None:
    assert dns_label_errors("a-0") == dns_label_errors("0" * 63) == ()
    assert len(dns_label_errors("a.b")) == len(dns_label_errors("a" * 64)) == 1
    assert dns_1035_label_errors("a-0") == ()
    assert len(dns_1035_label_errors("0a")) == 1


def test_long_hostile_names_are_checked_fast() -> None:
    assert not is_subdomain("a-." * 100_000)
    assert not is_subdomain("a" * 1_000_000 + "_")
    assert not is_label_value("a" * 1_000_000)
