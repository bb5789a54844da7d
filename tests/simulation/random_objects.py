"""Random nodes, pods and storage with many manifest fields, for the checker.

No scheduler decides about them. They are written to a finished journal, and the plugins' own
filters define the problems that the checker must report.
"""

from dataclasses import replace

from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.disruption import DisruptionBudget
from roadstead.facts.pod import (
    GroupMembership,
    HostPort,
    PodAffinityTerm,
    SpreadConstraint,
    Volume,
)
from roadstead.facts.selectors import LabelSelector
from roadstead.facts.storage import (
    NO_PROVISIONER,
    READ_WRITE_ONCE_POD,
    WAIT_FOR_FIRST_CONSUMER,
    AttachmentFacts,
    CapacityFacts,
    ClaimFacts,
    ClaimReference,
    CsiDriverFacts,
    CsiNodeFacts,
    CsiSource,
    NodeDriverFacts,
    StorageClassFacts,
    StorageFacts,
    VolumeFacts,
)
from tests.builders import GIB, node, pod, require, taint, term, tolerate

ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
RACK, GPU = "rack", "example.com/gpu"
DRIVER, ROOMY = "disk.csi.example.com", "roomy.csi.example.com"
EBS, PORTWORX = "kubernetes.io/aws-ebs", "kubernetes.io/portworx-volume"
NAMESPACES = (("default", (("team", "a"),)), ("other", (("team", "b"),)), ("bare", ()))
NAMES = tuple(name for name, _ in NAMESPACES)
CORDON = "node.kubernetes.io/unschedulable"
TAINTS = tuple(
    taint(key, value, effect)
    for key in ("gpu", CORDON)
    for value in ("", "yes")
    for effect in ("NoSchedule", "NoExecute", "PreferNoSchedule")
)
EXPRESSIONS = (
    require("app", "In", "x"),
    require("app", "In", "x", "y"),
    require("app", "NotIn", "y"),
    require("app", "Exists"),
    require("rev", "DoesNotExist"),
    require("rev", "NotIn", "1"),
)
ON_NODES = (
    require("disk", "In", "ssd"),
    require("disk", "NotIn", "ssd"),
    require("disk", "Exists"),
    require("disk", "DoesNotExist"),
    require("size", "Gt", "4"),
    require("size", "Lt", "4"),
    require("size", "Gt", "8"),
    require("disk", "Lt", "4"),
)
TIERS = (
    LabelSelector((require("tier", "In", "1"),)),
    LabelSelector((require("tier", "In", "1"), require("disk", "In", "ssd"))),
)
TOPOLOGIES = ((ZONE, ("a",)), ("disk", ("ssd",))), ((ZONE, ("b",)),), ()
MODES = (("ReadWriteOnce",), ("ReadWriteOnce", "ReadWriteMany"), (READ_WRITE_ONCE_POD,))


def _selector(draw):
    if draw.random() < 0.1:
        return draw.choice((None, LabelSelector()))
    return LabelSelector(tuple(draw.sample(EXPRESSIONS, draw.choice((1, 1, 1, 2)))))


def host(draw, name):
    """A node; some have no zone, no host name, or values that are no numbers."""
    labels = {HOSTNAME: name, ZONE: draw.choice("ab"), RACK: draw.choice(("", "r1", "r2"))}
    labels |= {
        "disk": draw.choice(("ssd", "hdd")),
        "size": draw.choice(("2", "4", "8", "-8", "big")),
    }
    labels |= {BETA_ZONE: draw.choice("ab"), REGION: "r"}
    kept = {key: each for key, each in labels.items() if draw.random() < 0.75}
    return node(
        name,
        cpu=draw.choice((300, 1000)),
        memory=4 * GIB,
        pods=draw.choice((1, 3, 6)),
        others={GPU: draw.choice((0, 1, 2))} if draw.random() < 0.5 else None,
        labels=kept,
        taints=tuple(draw.sample(TAINTS, draw.choice((0, 0, 0, 1, 2)))),
        unschedulable=draw.random() < 0.15,
    )


def _affinity(draw):
    how = draw.randrange(4)
    chosen = (
        None,
        None,
        LabelSelector(),
        LabelSelector((require("team", draw.choice(("In", "NotIn")), "a"),)),
    )[how]
    names = tuple(sorted(draw.sample(NAMES, draw.choice((0, 1, 2)))))
    key = draw.choice((ZONE, HOSTNAME, RACK))
    return PodAffinityTerm(key, _selector(draw), names, chosen)


def _spread(draw):
    return SpreadConstraint(
        draw.choice((ZONE, HOSTNAME, RACK)),
        draw.choice((1, 1, 2)),
        draw.choice(("DoNotSchedule", "DoNotSchedule", "ScheduleAnyway")),
        _selector(draw),
        draw.choice((0, 1, 2, 4)),
        draw.choice(("Honor", "Ignore")),
        draw.choice(("Honor", "Ignore")),
        draw.choice(((), (), ("rev",))),
    )


def _terms(draw, names):
    found = []
    for _ in range(draw.choice((1, 1, 2))):
        fields = (require("metadata.name", draw.choice(("In", "NotIn")), draw.choice(names)),)
        found.append(
            term(
                *draw.sample(ON_NODES, draw.choice((0, 1, 1, 2))),
                fields=fields if draw.random() < 0.3 else (),
                error="does not parse" if draw.random() < 0.1 else "",
            )
        )
    return tuple(found)


def _tolerations(draw):
    return tuple(
        tolerate(
            draw.choice(("", "gpu", CORDON)),
            draw.choice(("", "yes")),
            draw.choice(("", "NoSchedule", "NoExecute")),
            draw.choice(("", "Equal", "Exists")),
        )
        for _ in range(draw.choice((1, 2)))
    )


def _ports(draw):
    return tuple(
        HostPort(
            draw.choice(("0.0.0.0", "10.0.0.1", "10.0.0.2")),
            draw.choice(("TCP", "UDP")),
            draw.choice((80, 443)),
        )
        for _ in range(draw.choice((1, 2)))
    )


def _disk(draw):
    kind = draw.choice(("gcePersistentDisk", "awsElasticBlockStore", "iscsi", "rbd"))
    name = {"gcePersistentDisk": "pdName", "awsElasticBlockStore": "volumeID", "iscsi": "iqn"}
    source = {(name.get(kind, "image"), draw.choice(("d1", "d2")))}
    if draw.random() < 0.5:
        source.add(("readOnly", draw.choice(("true", "true", "false"))))
    if kind == "rbd":
        source |= {
            ("monitors", each) for each in draw.sample(("m1", "m2", "m3"), draw.choice((1, 2)))
        }
        source.add(("pool", draw.choice(("p1", "p2"))))
    return Volume(kind, kind, tuple(sorted(source)))


def claimed(name):
    """A volume of a pod that refers to a claim."""
    return Volume(f"v-{name}", "persistentVolumeClaim", (("claimName", name),))


def _volumes(draw, names):
    if draw.random() < 0.15:
        own = (("claimName", draw.choice(names)), ("podUID", draw.choice(("u1", "u2"))))
        return (Volume("v", "ephemeral", own),)
    return tuple(claimed(each) for each in draw.sample(names, draw.choice((1, 1, 2))))


class RandomPods:
    """Pods of which most use the features of two themes, so that they interact."""

    def __init__(self, draw, hosts, claims):
        self._draw, self._hosts, self._claims = draw, hosts, claims
        self._makers = {
            "near": lambda: {"pod_affinity": self._some(_affinity)},
            "apart": lambda: {"pod_anti_affinity": self._some(_affinity)},
            "spread": lambda: {"spread_constraints": self._some(_spread)},
            "terms": lambda: {"required_node_terms": _terms(draw, hosts)},
            "tolerant": lambda: {"tolerations": _tolerations(draw)},
            "ports": lambda: {"host_ports": _ports(draw)},
            "claims": self._with_claims,
            "disks": lambda: {"volumes": self._some(_disk)},
            "chosen": lambda: {"node_selector": (("disk", "ssd"),)},
            "devices": lambda: {
                "requests": (("cpu", draw.choice((0, 50))), (GPU, draw.choice((0, 1, 2))))
            },
            "ganged": self._ganged,
        }
        self._themes = draw.sample(sorted(self._makers), 2)
        if draw.random() < 0.4:
            self._themes[0] = "claims"
        self._made = []

    def _some(self, make):
        return tuple(make(self._draw) for _ in range(self._draw.choice((1, 1, 2, 3))))

    def _with_claims(self):
        return {"volumes": _volumes(self._draw, self._claims), "namespace": "default"}

    def _ganged(self):
        least = self._draw.choice((None, 1, 2, 3))
        group = GroupMembership(f"gang{self._draw.randrange(4)}", least)
        return {"pod_group": group, "namespace": "default"}

    def make(self):
        """A pod, or a copy of an earlier one with another priority."""
        draw = self._draw
        priority = draw.choice((0, 1, 10))
        if self._made and draw.random() < 0.35:
            # Preferably one that may still wait.
            return replace(draw.choice(self._made[-4:]), priority=priority)
        labels = {key: draw.choice(values) for key, values in (("app", "xyz"), ("rev", "12"))}
        facts = pod(
            cpu=draw.choice((0, 50, 50, 100, 400)),
            labels={key: each for key, each in labels.items() if draw.random() < 0.8},
            namespace=draw.choice(NAMES),
            is_terminating=draw.random() < 0.1,
            priority=priority,
            preemption_policy=draw.choice(
                ("PreemptLowerPriority", "PreemptLowerPriority", "Never")
            ),
            scheduler_name=draw.choice(("default-scheduler",) * 3 + ("some", "unknown")),
        )
        kinds = [each for each in self._themes if draw.random() < 0.6]
        if draw.random() < 0.4:
            kinds.append(draw.choice(sorted(self._makers)))
        for kind in kinds:
            facts = replace(facts, **self._makers[kind]())
        if draw.random() < 0.05:
            facts = replace(facts, node_name=draw.choice(self._hosts))
        self._made.append(facts)
        return facts


def _reach(draw, hosts):
    how = draw.randrange(6)
    if how < 2:
        return None
    if how > 3:
        return _terms(draw, hosts)
    if how == 2:
        return (term(require(ZONE, "In", draw.choice("ab"))),)
    return (term(require(HOSTNAME, "In", *draw.sample(hosts, min(2, len(hosts))))),)


def _volume(draw, name, hosts, **more):
    in_tree = draw.choice(("", "", "", EBS, PORTWORX))
    facts = VolumeFacts(
        name,
        draw.choice(("local", "local", "other")),
        draw.choice((4, 5, 10)) * GIB,
        draw.choice(MODES),
        labels=draw.choice(((), (("disk", "ssd"),)))
        + draw.choice(
            ((), (), ((ZONE, "a"),), ((ZONE, "a__ b"),), ((BETA_ZONE, "b"),), ((REGION, "q"),))
        )
        + draw.choice(((), (("tier", "1"),))),
        volume_mode=draw.choice(("Filesystem",) * 4 + ("Block",)),
        attributes_class=draw.choice(("", "", "", "fast")),
        is_terminating=draw.random() < 0.1,
        phase=draw.choice(("Available", "Available", "Available", "Released", "")),
        node_terms=_reach(draw, hosts),
        csi=None if in_tree else CsiSource(DRIVER, draw.choice((name, name, name, "", "shared"))),
        in_tree=in_tree,
        migrated=CsiSource(draw.choice((DRIVER, "ebs.csi.aws.com")), name) if in_tree else None,
        migrated_terms=_reach(draw, hosts) if in_tree else None,
    )
    return replace(facts, **more)


def _claim(draw, name, **more):
    facts = ClaimFacts(
        "default",
        name,
        f"uid-{name}",
        draw.choice(("local", "local", "made", "zoned", "roomy", "now", "none")),
        access_modes=draw.choice(MODES[:2] + MODES[:1] + MODES),
        requested_bytes=draw.choice((None, 4 * GIB, 5 * GIB)),
        volume_mode=draw.choice(("Filesystem",) * 5 + ("Block",)),
        attributes_class=draw.choice(("",) * 5 + ("fast",)),
        selector=draw.choice(TIERS) if draw.random() < 0.2 else None,
        owner_uid=draw.choice(("", "u1", "u2")),
        is_lost=draw.random() < 0.05,
        is_terminating=draw.random() < 0.05,
    )
    return replace(facts, **more)


def _near(zone):
    """Selectors of the nodes for which a capacity is valid."""
    there = require(ZONE, "In", zone)
    return LabelSelector((there,)), LabelSelector((there, require("disk", "In", "ssd")))


def storage(draw, hosts):
    """Volumes and claims, bound, half bound and waiting; classes, drivers and limits.

    At times most waiting claims are of one class, whose volumes are provisioned.
    """
    volumes, claims = [], []
    favourite = draw.choice((None, "roomy", "roomy", "roomy", "made", "zoned"))
    for number in range(6):
        volume, claim = f"pv{number}", f"c{number}"
        named = _claim(draw, claim, volume_name=draw.choice((volume, volume, volume, "lost")))
        is_whole = draw.random() < 0.9
        claims.append(replace(named, has_bind_completed=is_whole))
        owner = ClaimReference("default", claim, f"uid-{claim}")
        volumes.append(_volume(draw, volume, hosts, claim=owner, phase="Bound"))
    for number in range(6):
        owner = None
        if draw.random() < 0.3:
            uid = draw.choice(("", f"uid-w{number}", "other"))
            namespace = draw.choice(("default", "default", "default", "other"))
            owner = ClaimReference(namespace, draw.choice((f"w{number}",) * 3 + ("stray",)), uid)
        volumes.append(_volume(draw, f"free{number}", hosts, claim=owner))
        chosen = draw.choice((None, None, None, None, draw.choice(hosts)))
        of_class = {"storage_class": favourite} if favourite and draw.random() < 0.7 else {}
        claims.append(_claim(draw, f"w{number}", selected_node=chosen, **of_class))
    waits = WAIT_FOR_FIRST_CONSUMER
    return StorageFacts(
        tuple(volumes),
        tuple(claims),
        (
            StorageClassFacts("local", NO_PROVISIONER, waits),
            StorageClassFacts("made", draw.choice((DRIVER, EBS)), waits),
            StorageClassFacts(
                "zoned",
                DRIVER,
                waits,
                (((ZONE, ("a",)), ("disk", ("ssd",))), ((ZONE, ("b",)),), ()),
            ),
            StorageClassFacts("roomy", ROOMY, waits),
            StorageClassFacts("now", DRIVER, "Immediate"),
        ),
        tuple(
            CsiNodeFacts(
                name,
                tuple(
                    NodeDriverFacts(each, draw.choice((None, 0, 1, 1, 2)))
                    for each in (DRIVER, "ebs.csi.aws.com", ROOMY)
                ),
                draw.choice(((), (EBS,), (EBS, PORTWORX))),
            )
            for name in hosts
            if draw.random() < 0.8
        ),
        (CsiDriverFacts(ROOMY, tracks_capacity=draw.random() < 0.8), CsiDriverFacts(DRIVER)),
        tuple(
            CapacityFacts("default", f"room-{zone}-{of_class}", of_class, selector, limit)
            for zone in "ab"
            for of_class in ("roomy", "made")
            for selector in (draw.choice((None, *_near(zone), _near(zone)[0])),)
            for limit in (draw.choice((None, GIB, 5 * GIB, 20 * GIB, 20 * GIB)),)
        ),
        tuple(
            AttachmentFacts(f"at-{name}", name, DRIVER, draw.choice(("pv0", "pv1", "free0", "")))
            for name in hosts
            if draw.random() < 0.4
        ),
    )


def cluster(draw, hosts, groups=()):
    """Namespaces, storage, groups and budgets."""
    budgets = tuple(
        DisruptionBudget(
            namespace,
            f"keep-{namespace}",
            _selector(draw),
            draw.choice((0, 0, 1, 2)),
            draw.choice(((), (), ("s0", "s3", "s6"))),
        )
        for namespace in (*NAMES, "default", "default")
    )
    return ClusterFacts(NAMESPACES, (), storage(draw, hosts), budgets, groups)
