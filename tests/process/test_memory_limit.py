"""The memory of a real process is noticed within one step of a simulated run."""

import subprocess
import sys

import pytest

from tests.scenario.files import scenario, written

ROOM_MIB = 64
"""Above the process before the run, and at most above the limit when it is noticed."""

COMMAND = """
import sys
from dataclasses import replace
from pathlib import Path

from roadstead.bench.machine import own_memory_bytes, own_peak_bytes
from roadstead.config.scenario.read import load_scenario
from roadstead.cycle.batch import CompiledKernel
from roadstead.kernel.coverage import Coverage
from roadstead.kernel.start import load
from roadstead.scenario.compile import compile_scenario
from roadstead.simulator.limits import LimitExceededError
from roadstead.simulator.play import Variant, play

path, folder, room = sys.argv[1:]
scenario = compile_scenario(load_scenario(Path(path)))
kernel = CompiledKernel(load(), Coverage())
limit = own_memory_bytes() + (int(room) << 20)
limits = replace(scenario.limits, memory_bytes=limit)
try:
    play(
        replace(scenario, limits=limits), Variant(), Path(folder), kernel,
        read_processor_s=lambda: 0.0, read_memory_bytes=own_memory_bytes,
    )
except LimitExceededError as error:
    print(error)
print((own_peak_bytes() - limit) >> 20)
"""
CONTAINER = "{name: c, image: i, resources: {requests: {cpu: CPU}}}"
POD = f"{{metadata: {{name: p}}, spec: {{containers: [{CONTAINER}]}}}}"
BURST = """
workload: [{arrivals: {burst: {size: 200}}, pods: [{template: POD, gang: 10000}]}]
horizon: 1h
"""


@pytest.mark.parametrize("cpu", ["1m", "64"], ids=["pods fit", "pods wait"])
def test_a_burst_of_pods_in_one_moment_ends_near_the_limit(tmp_path, cpu):
    """200 arrivals are few steps, and their two million pods would need over two GB."""
    path = written(tmp_path, scenario(BURST.replace("POD", POD.replace("CPU", cpu))))

    done = subprocess.run(
        [sys.executable, "-c", COMMAND, path, tmp_path / "run", str(ROOM_MIB)],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    message, above_mib = done.stdout.splitlines()
    assert message.startswith("at 0s: the process uses")
    assert "(limits.memory_mib)" in message
    assert int(above_mib) < ROOM_MIB
