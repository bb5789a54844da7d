"""Amounts in human-readable form."""

import pytest

from roadstead.report.units import (
    exact_amount,
    human_amount,
    human_seconds,
    percent,
    resource_title,
    significant,
)


@pytest.mark.parametrize(
    ("resource", "amount", "text"),
    [
        ("cpu", 0, "0 cores"),
        ("cpu", 250, "0.2 cores"),
        ("cpu", 1500, "1.5 cores"),
        ("cpu", 16_352_000, "16,352 cores"),
        ("memory", 512, "512 B"),
        ("memory", 2 << 10, "2 KiB"),
        ("memory", 3 << 29, "1.5 GiB"),
        ("memory", 640 << 20, "640 MiB"),
        ("ephemeral-storage", 5 << 40, "5 TiB"),
        ("hugepages-2Mi", 1 << 30, "1 GiB"),
        ("alibabacloud.com/gpu-milli", 470, "0.5"),
        ("nvidia.com/gpu", 1234, "1,234"),
        ("pods", 50_000, "50,000"),
    ],
)
def test_amounts_have_natural_units(resource, amount, text):
    assert human_amount(resource, amount) == text


@pytest.mark.parametrize(
    ("resource", "amount", "text"),
    [
        ("cpu", 2000, "2"),
        ("cpu", 1500, "1500m"),
        ("memory", 3 << 29, "1,536 MiB"),
        ("memory", 4 << 30, "4 GiB"),
        ("memory", 1001, "1,001 bytes"),
        ("memory", 0, "0 bytes"),
        ("nvidia.com/gpu", 8, "8"),
    ],
)
def test_amounts_of_requests_are_exact(resource, amount, text):
    assert exact_amount(resource, amount) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0004, "0 ms"),
        (0.53, "530 ms"),
        (0.9996, "1.0 s"),
        (2.34, "2.3 s"),
        (119.0, "119.0 s"),
        (125.9, "2 min 5 s"),
    ],
)
def test_times_have_a_suitable_unit(seconds, text):
    assert human_seconds(seconds) == text


def test_extended_resources_have_titles_without_domain_and_unit():
    assert resource_title("alibabacloud.com/gpu-milli") == "gpu"
    assert resource_title("cpu") == "cpu"


def test_a_share_of_nothing_is_a_dash():
    assert (percent(None), percent(0.625)) == ("–", "62.5%")


@pytest.mark.parametrize(
    ("number", "digits", "text"),
    [(8772.17, 3, "8,770"), (5427.0, 1, "5,000"), (0.04813, 3, "0.0481"), (99.96, 3, "100")],
)
def test_a_large_figure_is_printed_in_full(number, digits, text):
    assert significant(number, digits) == text
