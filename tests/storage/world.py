"""Builders of storage, and random small fleets with claims."""

import random

from roadstead.config.model import default_config
from roadstead.cycle.batch import PodInCycle
from roadstead.cycle.plain_cycle import PlainCycle
from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.pod import PodIdentity, Volume
from roadstead.facts.selectors import LabelSelector, NodeSelectorTerm, Requirement
from roadstead.facts.storage import (
    NO_PROVISIONER,
    CapacityFacts,
    ClaimFacts,
    CsiDriverFacts,
    CsiNodeFacts,
    CsiSource,
    NodeDriverFacts,
    StorageClassFacts,
    StorageFacts,
    VolumeFacts,
)
from roadstead.framework.plugin import Handle
from roadstead.framework.profile import Profile
from roadstead.framework.tie_break import TieBreak
from roadstead.local.decision_paths import BatchPath, PathOptions
from roadstead.nodes.pod_class import PodClasses
from roadstead.nodes.table import NodeTable
from roadstead.plugins.in_tree import in_tree_registry
from tests.builders import GIB, node, pod

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
DRIVER = "disk.csi.example.com"
ROOMY = "roomy.csi.example.com"


def within(key, *values):
    """Return node terms of a volume that only nodes with these label values reach."""
    return (NodeSelectorTerm((Requirement(key, "In", tuple(sorted(values))),)),)


def volume(name, size=10, *, storage_class="local", phase="Available", **facts):
    facts.setdefault("access_modes", ("ReadWriteOnce",))
    facts.setdefault("csi", CsiSource(DRIVER, f"handle-{name}"))
    return VolumeFacts(
        name, storage_class=storage_class, capacity_bytes=size * GIB, phase=phase, **facts
    )


def claim(name, size=5, *, storage_class="local", namespace="default", **facts):
    facts.setdefault("access_modes", ("ReadWriteOnce",))
    return ClaimFacts(
        namespace,
        name,
        uid=f"uid-{name}",
        storage_class=storage_class,
        requested_bytes=None if size is None else size * GIB,
        **facts,
    )


def bound(name, volume_name, **facts):
    return claim(name, volume_name=volume_name, has_bind_completed=True, **facts)


def waiting(name, provisioner=NO_PROVISIONER, topologies=()):
    return StorageClassFacts(name, provisioner, "WaitForFirstConsumer", topologies)


def immediate(name, provisioner=DRIVER):
    return StorageClassFacts(name, provisioner, "Immediate")


def storage(*objects):
    """Return storage facts of objects, sorted by their types."""
    kinds = {
        "volumes": VolumeFacts,
        "claims": ClaimFacts,
        "classes": StorageClassFacts,
        "csi_nodes": CsiNodeFacts,
        "csi_drivers": CsiDriverFacts,
        "capacities": CapacityFacts,
    }
    return StorageFacts(
        **{
            name: tuple(each for each in objects if isinstance(each, kind))
            for name, kind in kinds.items()
        }
    )


def using(*names, read_only=False, **facts):
    """Return a pod with these claims."""
    volumes = tuple(
        Volume(f"v-{name}", "persistentVolumeClaim", (("claimName", name),)) for name in names
    )
    return pod(volumes=(*volumes, *facts.pop("volumes", ())), **facts)


def disk(kind, **source):
    """Return an in-tree volume; a tuple stands for a list of the manifest."""
    lists = {key: each if isinstance(each, tuple) else (each,) for key, each in source.items()}
    pairs = [(key, str(value)) for key, values in lists.items() for value in values]
    return Volume(kind, kind, tuple(sorted(pairs)))


def profiles_of(facts):
    """Return a maker of the default profile over these storage facts, one handle per process."""

    def build(classes):
        handle = Handle(classes, ClusterFacts(storage=facts))
        registry = in_tree_registry()
        return {
            each.scheduler_name: Profile(each, registry, handle)
            for each in default_config().profiles
        }

    return build


class Plain:
    """The default profile over one table."""

    def __init__(self, nodes, facts, seed=0):
        self.classes = PodClasses()
        self.profiles = profiles_of(facts)(self.classes)
        self.table = NodeTable(self.classes)
        for each in nodes:
            self.table.add_node(each)
        self.cycle = PlainCycle(self.table, self.profiles, TieBreak("random", seed))

    @property
    def storage(self):
        return next(iter(self.profiles.values())).storage

    def prepared(self, name, facts):
        return prepared(name, facts, self.classes, self.profiles)

    def run(self, pods):
        return [contents(self.cycle.decide(self.prepared(name, facts))) for name, facts in pods]


class Batches:
    """The default profile over one table, in batches."""

    def __init__(self, nodes, facts, seed=0):
        way = PathOptions(names_best=False, tie_break=TieBreak("random", seed))
        self.path = BatchPath(profiles_of(facts), way)
        self.path.add_nodes(nodes)

    @property
    def storage(self):
        return next(iter(self.path.profiles.values())).storage

    def prepared(self, name, facts):
        return prepared(name, facts, self.path.classes, self.path.profiles)

    def run(self, pods):
        left = [self.prepared(name, facts) for name, facts in pods]
        decided = []
        while left:
            some = self.path.decide(left)
            decided += some
            left = left[len(some) :]
        return [contents(each) for each in decided]


def prepared(name, facts, classes, profiles):
    identity = PodIdentity(f"uid-{name}", facts.namespace, name)
    pod_class = classes.pod_class(facts)
    signature = profiles[facts.scheduler_name].signature_of(pod_class, identity.uid)
    return PodInCycle(identity.uid, identity.key, pod_class, signature)


def contents(decision):
    refused = decision.diagnosis.message("") if decision.diagnosis is not None else ""
    return decision.node_name, decision.feasible, decision.error, refused


def random_fleet(seed, node_count=12, pods=30):
    """Return nodes, storage and pods with claims: few of everything, so that pods compete."""
    draw = random.Random(seed)
    names = [f"n{number:02}" for number in range(node_count)]
    nodes = [
        node(name, labels={ZONE: f"z{number % 3}", HOST: name}, cpu=draw.choice([1000, 4000]))
        for number, name in enumerate(names)
    ]
    objects = [
        waiting("local"),
        waiting("made", DRIVER),
        waiting("zoned", DRIVER, (((ZONE, ("z0", "z1")),),)),
        waiting("roomy", ROOMY),
        CsiDriverFacts(ROOMY, tracks_capacity=True),
        _capacity("a", "z1", draw.choice([4, 20]) * GIB),
        _capacity("b", "z2", draw.choice([4, 20]) * GIB),
    ]
    objects += [
        CsiNodeFacts(name, (NodeDriverFacts(DRIVER, draw.choice([None, 1, 2]), (ZONE,)),))
        for name in names
        if draw.random() < 0.8
    ]
    objects += [_random_volume(draw, f"pv{number:02}", names) for number in range(10)]
    claims = [_random_claim(draw, f"c{number:02}") for number in range(20)]
    wanted = [_random_pod(draw, claims) for _ in range(pods)]
    return nodes, storage(*objects, *claims), [(f"p{i:02}", each) for i, each in enumerate(wanted)]


def _capacity(name, zone, limit):
    selector = LabelSelector((Requirement(ZONE, "In", (zone,)),))
    return CapacityFacts("default", name, "roomy", selector, limit)


def _random_volume(draw, name, names):
    terms = draw.choice([within(HOST, draw.choice(names)), within(ZONE, "z0", "z2"), None])
    modes = draw.choice([("ReadWriteOnce",), ("ReadWriteOnce", "ReadWriteOncePod")])
    return volume(name, draw.choice([5, 10, 20]), node_terms=terms, access_modes=modes)


def _random_claim(draw, name):
    modes = draw.choice([("ReadWriteOnce",)] * 3 + [("ReadWriteOncePod",)])
    storage_class = draw.choice(["local", "local", "made", "zoned", "roomy"])
    return claim(name, draw.choice([4, 8]), storage_class=storage_class, access_modes=modes)


def _random_pod(draw, claims):
    chosen = draw.sample(claims, draw.choice([0, 1, 1, 2]))
    return using(*(each.name for each in chosen), cpu=draw.choice([100, 500]))
