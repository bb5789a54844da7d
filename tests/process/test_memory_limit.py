"""The memory of a real process is noticed within one step of a simulated run."""

import subprocess
import sys
from pathlib import Path

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
from roadstead.kernel.decision_counts import DecisionCounts
from roadstead.kernel.compiled_code import load
from roadstead.scenario.compile import compile_scenario
from roadstead.simulator.limits import LimitExceededError
from roadstead.simulator.play import Variant, play

path, folder, room = sys.argv[1:]
scenario = compile_scenario(load_scenario(Path(path)))
kernel = CompiledKernel(load(), DecisionCounts())
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
workload: [{arrivals: {burst: {size: 1000}}, duration: 1s, pods: [{template: POD, gang: 10000}]}]
horizon: 1h
"""
STREAM = """
workload: [{arrivals: {every: 10ms}, duration: 1s, pods: [{template: POD}]}]
horizon: 100000s
limits: {rows: 10000}
"""


def limited_run(folder: Path, body: str, cpu: str) -> tuple[str, int]:
    """Play ten million pods; return the error, and the peak memory above the limit in MiB."""
    path = written(folder, scenario(body.replace("POD", POD.replace("CPU", cpu))))
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, path, folder / "run", str(ROOM_MIB)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    message, above_mib = done.stdout.splitlines()
    return message, int(above_mib)


@pytest.mark.parametrize("cpu", ["1m", "64"], ids=["pods fit", "pods wait"])
def test_ten_million_pods_in_one_moment_end_near_the_memory_limit(tmp_path: Path, cpu: str) -> None:
    """A thousand arrivals are few steps; their pods would need over ten GB."""
    message, above_mib = limited_run(tmp_path, BURST, cpu)

    assert message.startswith("at 0s: the process uses")
    assert "(limits.memory_mib)" in message
    assert above_mib < ROOM_MIB


def test_ten_million_pods_of_a_second_need_the_memory_of_those_that_run(tmp_path: Path) -> None:
    """A hundred run at a time; the run ends at the first limit, which is that of the rows."""
    message, above_mib = limited_run(tmp_path, STREAM, "1m")

    assert message.startswith("at 1m")
    assert "has more than 10,000 rows (limits.rows)" in message
    assert above_mib <= 0
