"""Random nodes, pods and clusters: with few values, so that equal ones are frequent."""

from hypothesis import strategies as st

from roadstead.facts.pod import HostPort
from tests.builders import GIB, GPU, MIB, named, node, pod, prefer, require, taint, term, tolerate

NODE_NAMES = [f"n{number}" for number in range(8)]
ZONE = "topology.kubernetes.io/zone"
HUGE = "hugepages-2Mi"
LABELS = {
    ZONE: ["a", "b"],
    "disk": ["ssd", "hdd", ""],
    "cores": ["4", "16", "-8", "many", "9223372036854775808"],
}
IMAGES = ["nginx:latest", "redis:7", "app:v1"]
TAINTS = [
    taint(key, value, effect)
    for key in ("gpu", "node.kubernetes.io/unschedulable")
    for value in ("", "yes")
    for effect in ("NoSchedule", "NoExecute", "PreferNoSchedule")
]
PORTS = [
    HostPort(ip, protocol, port)
    for ip in ("0.0.0.0", "10.0.0.1", "10.0.0.2")
    for protocol in ("TCP", "UDP")
    for port in (80, 443)
]


def mostly(usual, others):
    """Draw the usual value two times in three, so that not every node refuses every pod."""
    return st.one_of(st.just(usual), st.just(usual), others)


node_labels = st.fixed_dictionaries(
    {}, optional={key: st.sampled_from(values) for key, values in LABELS.items()}
)
tolerations = st.builds(
    tolerate,
    key=st.sampled_from(["", "gpu", "node.kubernetes.io/unschedulable"]),
    value=st.sampled_from(["", "yes"]),
    effect=st.sampled_from(["", "NoSchedule", "NoExecute", "PreferNoSchedule"]),
    operator=st.sampled_from(["", "Equal", "Exists", "Unknown"]),
)
_SETS = [require(key, op, *vs[:2]) for key, vs in LABELS.items() for op in ("In", "NotIn")]
_PRESENCE = [require(key, op) for key in [*LABELS, "absent"] for op in ("Exists", "DoesNotExist")]
_BOUNDS = [require("cores", op, bound) for op in ("Gt", "Lt") for bound in ("8", "-9", "16")]
_FIELDS = [require("metadata.name", op, name) for op in ("In", "NotIn") for name in NODE_NAMES[:3]]
_FIELDS += [require("metadata.other", op, value) for op in ("In", "NotIn") for value in ("", "n1")]
expressions = st.sampled_from([*_SETS, *_PRESENCE, *_BOUNDS])
terms = st.one_of(
    st.builds(
        lambda wanted, fields: term(*wanted, fields=fields),
        st.lists(expressions, max_size=2),
        st.lists(st.sampled_from(_FIELDS), max_size=2),
    ),
    st.builds(named, st.sampled_from(NODE_NAMES)),
    st.just(term(require("disk", "In", "ssd"), error="does not parse")),
)
sound_terms = terms.filter(lambda each: not each.error)


def nodes(names=NODE_NAMES):
    return st.builds(
        node,
        name=st.sampled_from(names),
        cpu=st.sampled_from([0, 1000, 3999, 4000]),
        memory=st.sampled_from([0, GIB, 3 * GIB + 1]),
        pods=st.integers(0, 4),
        others=st.fixed_dictionaries(
            {}, optional={GPU: st.integers(0, 4), HUGE: st.sampled_from([2 * MIB, 64 * MIB])}
        ),
        labels=node_labels,
        taints=mostly((), st.lists(st.sampled_from(TAINTS), max_size=2, unique=True).map(tuple)),
        unschedulable=mostly(False, st.booleans()),
        images=st.dictionaries(
            st.sampled_from(IMAGES),
            st.sampled_from([MIB, 90 * MIB, 700 * MIB, 2 * GIB]),
            max_size=2,
        ),
    )


_amounts = {
    "cpu": st.sampled_from([None, 0, 1, 333, 1000, 2500]),
    "memory": st.sampled_from([None, 0, 1, 100 * MIB, GIB]),
    "others": st.fixed_dictionaries(
        {},
        optional={
            GPU: st.integers(0, 3),
            HUGE: st.sampled_from([0, 2 * MIB, 64 * MIB]),
            "ephemeral-storage": st.sampled_from([0, GIB]),
        },
    ),
}
small_pods = st.builds(
    pod,
    **_amounts,
    priority=st.sampled_from([0, 10]),
    host_ports=st.lists(st.sampled_from(PORTS), max_size=2).map(tuple),
)
pods = st.builds(
    pod,
    **_amounts,
    labels=st.sampled_from([{}, {"app": "web"}]),
    priority=st.sampled_from([0, 10]),
    node_name=mostly("", st.just("n1")),
    node_selector=mostly({}, node_labels),
    required_node_terms=mostly(None, st.lists(terms, max_size=2).map(tuple)),
    preferred_node_terms=st.lists(
        st.builds(prefer, st.integers(1, 100), sound_terms), max_size=2
    ).map(tuple),
    tolerations=st.lists(tolerations, max_size=3).map(tuple),
    host_ports=st.lists(st.sampled_from(PORTS), max_size=2).map(tuple),
    images=st.lists(st.sampled_from([*IMAGES, "unknown:v9"]), max_size=3).map(tuple),
    container_count=st.integers(1, 3),
)
clusters = st.lists(
    st.tuples(nodes(), st.lists(small_pods, max_size=3)),
    max_size=5,
    unique_by=lambda line: line[0].name,
)
