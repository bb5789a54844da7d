"""The loop that measures the speed of a machine."""

import pytest


def test_a_calibration_scales_seconds_to_the_speed_of_the_machine(scripts):
    calibration = scripts("calibration")
    found = calibration.calibrate(100_000)

    assert found.additions == 100_000
    assert found.seconds > 0
    twice_as_slow = calibration.Calibration(calibration.ADDITIONS, 2.1, 2.1)
    assert twice_as_slow.scaled(8.0) == pytest.approx(4.0)
