"""Several hosts on this machine for tests of Ray clusters: namespaces with a Ray node each.

Each host has a network, a process and a mount namespace of its own, an address, a disk of its own,
and an init process: a power cut is the kill of that init, which ends every process of the host.
Needs root and Linux; `may_have_hosts` reports whether this machine allows it. Where it does not,
`test_nodes_of_one_machine.py` runs instead.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.waiting import until

BIN = Path(sys.executable).parent
RAY_PORT = 6379
START_S = 240.0
DISK_BYTES = 64 << 20
"""Size of a disk that a test fills; larger than the journals of tests."""
FILLER = "filler"
NETWORK = "10.77.{number}.{host}"

INIT = (
    "hostname {name}; mount -t tmpfs tmpfs /dev/shm; mount -t tmpfs tmpfs {disk}; "
    "mkdir -p /tmp/ray; mount -t tmpfs tmpfs /tmp/ray; echo up; exec sleep infinity"
)
"""In /tmp/ray, Ray looks for the address of the machine's latest cluster: `auto` would be that of
another test."""

ENVIRONMENT = dict(os.environ)
"""Variables of this process before any test: a test's own Ray, which may still be shutting down,
sets its token meanwhile, and a host that gets it starts a cluster that no other host may join."""

WITHOUT_HOSTS = "ROADSTEAD_TEST_WITHOUT_HOSTS"
"""A variable: if it is set, tests run as where namespaces are refused."""

NO_HOSTS = (
    "needs root and namespaces of Linux, for hosts that lose power, network or disk; "
    "test_nodes_of_one_machine.py runs in its place"
)

_numbers = itertools.count(os.getpid() % 200)


def may_have_hosts() -> bool:
    """Whether this process may make namespaces and has the programs for it."""
    if os.environ.get(WITHOUT_HOSTS) or sys.platform != "linux" or os.geteuid() != 0:
        return False
    if not all(map(shutil.which, ("ip", "unshare", "nsenter"))):
        return False
    probe = ["unshare", "--net", "--pid", "--mount", "--uts", "--fork", "true"]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0


def _call(*command: str) -> str:
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, f"{' '.join(command)}: {ended.stderr or ended.stdout}"
    return ended.stdout


class Host:
    """One host. disk: a path that only this host's processes see with its contents."""

    def __init__(self, net: str, name: str, address: str, folder: Path) -> None:
        self.name, self.address, self.net = name, address, net
        self.disk = folder / f"disk-{name}"
        self.temp = folder / f"r{name[-1]}"
        self.environment: dict[str, str] = {}
        """Variables of the host's Ray processes, beside those of this process."""
        self.disk.mkdir()
        self._begin()

    def _begin(self) -> None:
        init = INIT.format(name=self.name, disk=self.disk)
        self._unshare = subprocess.Popen(
            [
                *("ip", "netns", "exec", self.net, "unshare", "--pid", "--mount", "--uts"),
                *("--fork", "--kill-child", "--mount-proc", "sh", "-c", init),
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._unshare.stdout is not None
        assert self._unshare.stdout.readline() == "up\n"
        self.pid = int(_call("pgrep", "-P", str(self._unshare.pid)).split()[0])

    def command(self, *command: str) -> list[str]:
        """Return the command that runs another one on this host, in the present folder."""
        enter = ["nsenter", "-t", str(self.pid), "-p", "-m", "-u", "-n", "--"]
        return [*enter, "env", "-C", os.getcwd(), *map(str, command)]

    def run(self, *command: str, timeout_s: float = START_S) -> subprocess.CompletedProcess[str]:
        """Run a command on this host and return its result."""
        return subprocess.run(
            self.command(*command),
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
            env=ENVIRONMENT,
        )

    def begin(self, *command: str, **options: object) -> subprocess.Popen[str]:
        """Begin a command on this host."""
        return subprocess.Popen(
            self.command(*command),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=ENVIRONMENT,
            **options,
        )

    @property
    def variables(self) -> list[str]:
        """Return `environment` as arguments of `env`."""
        return [f"{name}={value}" for name, value in self.environment.items()]

    def start_ray(
        self, head: Host | None, cpus: int, *options: str, dashboard: bool = False
    ) -> None:
        """Start a Ray node; a head's own if `head` is None. dashboard: serves jobs, on a head."""
        where = (
            ["--head", f"--port={RAY_PORT}", *([] if dashboard else ["--include-dashboard=false"])]
            if head is None
            else [f"--address={head.address}:{RAY_PORT}"]
        )
        # Ray runs actors at niceness 15: on a machine that does much else, they would not start.
        ended = self.run(
            *("env", "RAY_worker_niceness=0", *self.variables),
            *(str(BIN / "ray"), "start", *where, f"--node-ip-address={self.address}"),
            *(f"--num-cpus={cpus}", "--object-store-memory=80000000", "--disable-usage-stats"),
            *(f"--temp-dir={self.temp}", *options),
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr

    def restart(self, head: Host, cpus: int, *options: str) -> None:
        """Start a host again after a power cut, and its Ray node."""
        _call("ip", "-n", self.net, "link", "set", "eth0", "up")
        _call("ip", "-n", self.net, "link", "set", "lo", "up")
        self._begin()
        self.start_ray(head, cpus, *options)

    def cut_power(self) -> None:
        """End every process of the host at once; its network ends with them."""
        subprocess.run(["ip", "-n", self.net, "link", "set", "eth0", "down"], check=False)
        os.kill(self.pid, 9)
        self._unshare.wait()

    def cut_network(self, is_cut: bool = True) -> None:
        """Cut the host off the others, or connect it again."""
        _call("ip", "-n", self.net, "link", "set", "eth0", "down" if is_cut else "up")

    def pids(self, part: str) -> list[int]:
        """Return the ids, inside the host, of its processes whose command line has this part."""
        # -ww: without it, ps cuts a command line at the width of a terminal that it finds.
        listed = self.run("ps", "-ww", "-eo", "pid=,args=").stdout.splitlines()
        # The host's init reaps no process that its parent left: an ended one stays as defunct.
        without = ("ps -ww", "<defunct>")
        return [
            int(line.split()[0])
            for line in listed
            if part in line and not any(each in line for each in without)
        ]

    @property
    def is_up(self) -> bool:
        """Whether the host's init runs: its power was not cut."""
        return self._unshare.poll() is None

    def signal(self, signal: int, part: str) -> None:
        """Send a signal to the host's processes whose command line has this part: one or more."""
        pids = self.pids(part)
        assert pids, f"no process of {self.name} has {part!r} in its command line"
        for pid in pids:
            self.run("kill", f"-{signal}", str(pid))

    def fill_disk(self) -> None:
        """Leave no free byte on the host's disk."""
        _call(*self.command("mount", "-o", f"remount,size={DISK_BYTES}", str(self.disk)))
        self.run("dd", "if=/dev/zero", f"of={self.disk / FILLER}", "bs=64k")

    def free_disk(self) -> None:
        """Take back `fill_disk`."""
        _call(*self.command("rm", str(self.disk / FILLER)))

    def end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            if self.is_up:
                os.kill(self.pid, 9)
        self._unshare.wait()


@contextmanager
def hosts(
    count: int,
    cpus: int = 4,
    labels: Sequence[str] = (),
    *,
    dashboard: bool = False,
    before_ray: Callable[[Sequence[Host]], None] = lambda made: None,
) -> Iterator[list[Host]]:
    """Yield hosts with a Ray cluster on them, the first its head; removes all of it afterwards.

    labels: of each host's Ray node, as for `ray start --labels`. before_ray: prepares the hosts.
    """
    number = next(number for each in _numbers if not _is_used(number := each % 250))
    bridge, made = f"rsb{number}", []
    folder = Path(tempfile.mkdtemp(prefix="rsh-", dir="/tmp"))
    try:
        _call("ip", "link", "add", bridge, "type", "bridge")
        _call("ip", "link", "set", bridge, "up")
        for index in range(1, count + 1):
            made.append(_host(number, index, bridge, folder))
        before_ray(made)
        head, *others = made
        options = [[f"--labels={text}"] if text else [] for text in labels] or [[]] * count
        head.start_ray(None, cpus, *options[0], dashboard=dashboard)
        starts = [(each, more) for each, more in zip(others, options[1:], strict=True)]
        for each, more in starts:
            each.start_ray(head, cpus, *more)
        _await_nodes(head, count)
        yield made
    finally:
        for each in made:
            each.end()
            subprocess.run(["ip", "netns", "del", each.net], check=False)
        subprocess.run(["ip", "link", "del", bridge], check=False)
        shutil.rmtree(folder, ignore_errors=True)


def _is_used(number: int) -> bool:
    """Whether hosts with this number exist: the kernel removes links after their namespace."""
    return (
        any(Path("/sys/class/net").glob(f"rs{number}v*"))
        or Path(f"/sys/class/net/rsb{number}").exists()
    )


def _host(number: int, index: int, bridge: str, folder: Path) -> Host:
    net, address = f"rs{number}h{index}", NETWORK.format(number=number, host=index)
    link = f"rs{number}v{index}"
    _call("ip", "netns", "add", net)
    _call("ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", net)
    _call("ip", "link", "set", link, "master", bridge, "up")
    _call("ip", "-n", net, "addr", "add", f"{address}/24", "dev", "eth0")
    _call("ip", "-n", net, "link", "set", "eth0", "up")
    _call("ip", "-n", net, "link", "set", "lo", "up")
    return Host(net, f"h{index}", address, folder)


def _await_nodes(head: Host, count: int) -> None:
    script = (
        "import ray; ray.init(address='auto', logging_level='ERROR'); "
        "print(sum(node['Alive'] for node in ray.nodes()))"
    )

    def are_registered() -> bool:
        command = ("env", *head.variables, str(BIN / "python"), "-c", script)
        return head.run(*command).stdout.strip() == str(count)

    what = f"not all {count} Ray nodes registered within {START_S:g} s"
    assert until(are_registered, START_S), what
