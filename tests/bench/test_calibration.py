"""The loop that measures the speed of a machine."""

import pytest

from roadstead.bench.calibration import ADDITIONS, Calibration, calibrate


def test_a_calibration_scales_seconds_to_the_speed_of_the_machine():
    found = calibrate(100_000)

    assert found.additions == 100_000
    assert found.seconds > 0
    assert Calibration(ADDITIONS, 2.1, 2.1).scaled(8.0) == pytest.approx(4.0)
