"""A disk that fills up: the binder stops acknowledging and reports it; acknowledged binds are on
the disk. No random calls follow the runs: the disk that they write to does not fill up.
"""

import pytest

from tests.simulation.simulation import FAULTS, simulate

NETWORK = tuple(kind for kind in FAULTS if kind != "crash")


@pytest.mark.parametrize("room_bytes", [6_000, 8_000, 10_000])
def test_acknowledged_binds_are_on_a_full_disk(room_bytes):
    outcomes = [simulate(seed, NETWORK, room_bytes, rambles=False) for seed in range(8)]

    assert {each.seed: each.problems for each in outcomes if each.problems} == {}
    assert sum(each.happened["full disk"] for each in outcomes) >= 3, (
        "most disks of this size fill up"
    )


def test_crashes_on_a_disk_that_fills_up_lose_no_acknowledged_bind():
    outcomes = [simulate(seed, FAULTS, 12_000, rambles=False) for seed in range(8)]

    assert {each.seed: each.problems for each in outcomes if each.problems} == {}
