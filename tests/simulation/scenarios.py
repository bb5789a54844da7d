"""Small clusters under pressure, made from a seed: little room, many constraints, many changes.

A scenario is a plan, and waves: at a time (virtual seconds after the start) nodes are added and
pods are submitted. Everything is drawn from one generator, in one order.
"""

import json
import random
from dataclasses import dataclass, replace

from roadstead.config.settings import ActorDeadlines, Bounds, Settings
from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.pod import (
    GroupMembership,
    HostPort,
    PodAffinityTerm,
    PodIdentity,
    SpreadConstraint,
    Volume,
)
from roadstead.facts.pod_groups import PodGroup
from roadstead.facts.selectors import LabelSelector, NodeSelectorTerm
from roadstead.facts.storage import (
    NO_PROVISIONER,
    READ_WRITE_ONCE_POD,
    WAIT_FOR_FIRST_CONSUMER,
    ClaimFacts,
    ClaimReference,
    StorageClassFacts,
    StorageFacts,
    VolumeFacts,
)
from roadstead.facts.taints import Taint
from roadstead.run import RunPlan
from tests.builders import GIB, node, pod, require
from tests.simulation.limits import USUAL, Shrunk, late_of

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
ZONES = ("a", "b", "c")

GANGS = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {
            "plugins": {
                "multiPoint": {
                    "enabled": [{"name": "Coscheduling"}],
                    "disabled": [{"name": "PrioritySort"}],
                }
            },
            "pluginConfig": [{"name": "Coscheduling", "args": {"permitWaitingTimeSeconds": 2}}],
        }
    ],
}

QUICK = ActorDeadlines(
    start_s=5.0, call_s=1.0, evaluate_s=2.5, lease_s=6.0, assume_s=4.0, stop_s=5.0
)


@dataclass(frozen=True, slots=True)
class Wave:
    """Events at one time: nodes first, then pods.

    Then changes: removed, nodes by name; changed, (old, new); gone, uids of pods to delete; opened,
    pods with their new facts, if they still exist by then.
    """

    at_s: float
    nodes: tuple = ()
    pods: tuple = ()
    removed: tuple = ()
    changed: tuple = ()
    gone: tuple = ()
    opened: tuple = ()


@dataclass(frozen=True, slots=True)
class Scenario:
    """kinds: special features of the pods, for statistics. running: (identity, facts, node name).

    kills_s: when the process ends with all actors, and another one continues. is_quiet: there are
    no faults, and a wave begins only when nothing moves any more. has_kernel: schedulers have
    compiled code from the start. limits: of the cores and the journal. outside: faults of the
    extender, if there is one. is_strained: attempts may fail for reasons unrelated to the pod.
    """

    plan: RunPlan
    nodes: tuple
    waves: tuple
    kinds: tuple
    running: tuple = ()
    kills_s: tuple = ()
    is_quiet: bool = False
    has_kernel: bool = False
    limits: Shrunk = USUAL
    outside: object = None
    is_strained: bool = False

    @property
    def pods(self):
        return [each for wave in self.waves for each in wave.pods]

    @property
    def facts_sent(self):
        """uid → facts that the client sent, in order; a client with all inputs at the start changes
        none.
        """
        sent = {who.uid: [facts] for who, facts in self.pods}
        for wave in () if self.kills_s else self.waves:
            for who, facts in wave.opened:
                sent[who.uid].append(facts)
        return sent


def _app(name):
    return LabelSelector((require("app", "In", name),))


def _term(app, key):
    return PodAffinityTerm(key, _app(app), ("default",), None)


def _spread(draw, number):
    key, skew = draw.choice((ZONE, HOSTNAME)), draw.choice((1, 1, 2))
    labels = {"app": f"spread{number % 2}"}
    constraint = SpreadConstraint(
        key, skew, "DoNotSchedule", _app(labels["app"]), 1, "Honor", "Ignore", ()
    )
    return pod(cpu=draw.choice((50, 100)), labels=labels, spread_constraints=(constraint,))


def _apart(draw, number):
    app = f"apart{number % 2}"
    key = draw.choice((HOSTNAME, HOSTNAME, ZONE))
    return pod(cpu=50, labels={"app": app}, pod_anti_affinity=(_term(app, key),))


def _crossed(draw, number):
    """One of two pods that exclude each other; only the other one declares it."""
    if draw.random() < 0.5:
        return pod(cpu=50, labels={"app": "shy"})
    return pod(cpu=50, labels={"app": "loud"}, pod_anti_affinity=(_term("shy", ZONE),))


def _near(draw, number):
    app = f"near{number % 2}"
    return pod(
        cpu=100, labels={"app": app}, pod_affinity=(_term(app, draw.choice((ZONE, HOSTNAME))),)
    )


def _port(draw, number):
    return pod(cpu=50, host_ports=(HostPort("0.0.0.0", "TCP", 8000 + number % 2),))


def _alone(draw, number):
    """Two or more pods with one claim that only one of them may use."""
    return pod(cpu=50, volumes=(_claimed(f"alone{draw.randrange(3)}"),))


def _local(draw, number):
    """A pod whose claim waits for one of few local volumes."""
    return pod(cpu=50, volumes=(_claimed(f"local{draw.randrange(6)}"),))


def _claimed(claim):
    return Volume("data", "persistentVolumeClaim", (("claimName", claim),))


def _ranked(draw, number):
    return pod(cpu=draw.choice((300, 500, 900)), priority=draw.choice((0, 0, 10, 100)))


def _plain(draw, number):
    return pod(cpu=draw.choice((50, 100, 250, 600)))


KINDS = {
    "plain": _plain,
    "spread": _spread,
    "apart": _apart,
    "crossed": _crossed,
    "near": _near,
    "port": _port,
    "alone": _alone,
    "local": _local,
    "ranked": _ranked,
}


def _host(draw, number):
    name, zone = f"n{number}", ZONES[number % draw.choice((1, 2, 3))]
    return node(
        name,
        cpu=draw.choice((500, 1000, 2000)),
        memory=8 * GIB,
        pods=draw.choice((2, 4, 8)),
        labels={HOSTNAME: name, ZONE: zone},
    )


def _storage(draw, hosts):
    names = [each.name for each in hosts]
    volumes, claims = [], []
    for number in range(3):
        volume = VolumeFacts(
            f"v-alone{number}",
            access_modes=(READ_WRITE_ONCE_POD,),
            phase="Bound",
            claim=ClaimReference("default", f"alone{number}", f"c-alone{number}"),
        )
        volumes.append(volume)
        claims.append(
            ClaimFacts(
                "default",
                f"alone{number}",
                f"c-alone{number}",
                volume_name=volume.name,
                has_bind_completed=True,
                access_modes=(READ_WRITE_ONCE_POD,),
            )
        )
    for number in range(4):
        here = NodeSelectorTerm((require(HOSTNAME, "In", draw.choice(names)),), (), "", ())
        volumes.append(
            VolumeFacts(
                f"v-local{number}",
                "local",
                GIB,
                ("ReadWriteOnce",),
                phase="Available",
                node_terms=(here,),
            )
        )
    for number in range(6):
        claims.append(
            ClaimFacts(
                "default",
                f"local{number}",
                f"c-local{number}",
                "local",
                access_modes=("ReadWriteOnce",),
                requested_bytes=GIB,
            )
        )
    local = StorageClassFacts("local", NO_PROVISIONER, WAIT_FOR_FIRST_CONSUMER)
    return StorageFacts(tuple(volumes), tuple(claims), (local,))


def _gangs(draw, count):
    """Members of a few gangs, and their pod groups."""
    pods, groups = [], []
    for number in range(count):
        size = draw.randint(2, 4)
        least = draw.randint(2, size)
        facts = pod(
            cpu=draw.choice((100, 300, 700)), pod_group=GroupMembership(f"g{number}", least)
        )
        groups.append(PodGroup("default", f"g{number}", least))
        pods += [(f"g{number}-{member}", facts) for member in range(size)]
    return pods, tuple(groups)


def make(seed, journal=None, *, changes=False):
    """The scenario of a seed. changes: the cluster also changes during the run."""
    draw = random.Random(f"scenario {seed}")
    hosts = [_host(draw, number) for number in range(draw.randint(2, 12))]
    late = [_host(draw, len(hosts) + number) for number in range(draw.choice((0, 0, 1, 2)))]
    kinds = tuple(sorted(draw.sample(sorted(KINDS), draw.randint(1, 4))))
    count = draw.randint(10, 60)
    named = [
        (f"{kind}{number}", KINDS[kind](draw, number))
        for number, kind in enumerate(draw.choices(kinds, k=count))
    ]
    members, groups = _gangs(draw, draw.choice((0, 0, 0, 1, 3)))
    # The members of a gang arrive together, among the other pods.
    place = draw.randint(0, len(named))
    named[place:place] = members
    pods = [(PodIdentity(f"uid-{name}", "default", name), facts) for name, facts in named]
    settings = Settings(
        runtime="inline",
        schedulers=draw.choice((1, 2, 3, 4)),
        workers=draw.choice((0, 0, 1, 2)),
        control=draw.choice(("together", "apart", "apart")),
        batch=draw.choice((1, 2, 4, 16)),
        seed=draw.randrange(1000),
        journal=journal,
        deadlines=QUICK,
        bounds=Bounds(inflight_max_batches=draw.choice((1, 4))),
    )
    plan = RunPlan(
        settings,
        json.dumps(GANGS) if groups else "",
        "simulated.yaml" if groups else "",
        ClusterFacts(storage=_storage(draw, hosts), pod_groups=groups),
    )
    if groups:
        kinds = (*kinds, "gang")
    waves = _waves(draw, pods, late)
    if changes:
        waves = tuple(sorted((*waves, *_changes(seed, hosts, pods)), key=lambda wave: wave.at_s))
    limits = replace(USUAL, cache=late_of(seed))
    return Scenario(plan, tuple(hosts), waves, kinds, limits=limits)


def _changes(seed, hosts, pods):
    """Nodes are removed, added again and changed, pods are deleted: each at a few times."""
    draw = random.Random(f"changes {seed}")
    waves, now = [], {host.name: host for host in hosts}
    for at_s in sorted(round(draw.uniform(0.1, 7.0), 3) for _ in range(draw.randint(2, 8))):
        what = draw.choice(("remove", "change", "delete", "delete"))
        if what == "remove":
            host = now[draw.choice(sorted(now))]
            waves.append(Wave(at_s, removed=(host,)))
            if draw.random() < 0.8:
                waves.append(Wave(at_s + draw.choice((0.0, 0.3, 2.0)), nodes=(host,)))
            else:
                del now[host.name]
            if not now:
                break
        elif what == "change":
            old = now[draw.choice(sorted(now))]
            new = now[old.name] = _changed(draw, old)
            waves.append(Wave(at_s, changed=((old, new),)))
        else:
            names = draw.sample(pods, min(len(pods), draw.randint(1, 4)))
            waves.append(Wave(at_s, gone=tuple(who.uid for who, _ in names)))
    return waves


def _changed(draw, host):
    """A node with a taint added or removed, or larger or smaller."""
    if draw.random() < 0.5:
        taints = () if host.taints else (Taint("k", "v", "NoSchedule"),)
        return replace(host, taints=taints)
    cpu = draw.choice((300, 1000, 3000))
    others = tuple(each for each in host.allocatable if each[0] != "cpu")
    return replace(host, allocatable=tuple(sorted((("cpu", cpu), *others))))


def _waves(draw, pods, late):
    cuts = sorted(draw.randint(1, len(pods)) for _ in range(draw.choice((0, 0, 1, 2))))
    parts = [pods[start:end] for start, end in zip([0, *cuts], [*cuts, len(pods)], strict=True)]
    waves = [Wave(0.0, (), tuple(parts[0]))]
    for part in parts[1:]:
        waves.append(Wave(round(draw.uniform(0.05, 6.0), 3), (), tuple(part)))
    for host in late:
        waves.append(Wave(round(draw.uniform(0.05, 6.0), 3), (host,)))
    return tuple(sorted(waves, key=lambda wave: wave.at_s))
