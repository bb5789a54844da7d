"""Wider scenarios: more manifest fields, in addition to the small clusters under pressure.

Drawn from a generator of their own, so that the scenarios of `scenarios.py` stay the same for each
seed. Namespaces and their selectors, memory and extended resources that are scarce, ports by
address and protocol, selectors, node affinity, taints and tolerations of every effect, cordoned
nodes, minDomains, budgets, gates that open later, several profiles with weights of their own.
"""

import json
import random
from dataclasses import replace

from roadstead.facts.cluster import SelectsPods
from roadstead.facts.disruption import DisruptionBudget
from roadstead.facts.pod import HostPort, PodAffinityTerm, PodIdentity, SpreadConstraint
from roadstead.facts.selectors import LabelSelector
from tests.builders import GIB, MIB, node, pod, prefer, require, taint, term, tolerate
from tests.simulation.scenarios import HOSTNAME, ZONE, ZONES, Wave

NAMESPACES = (
    ("default", (("team", "a"),)),
    ("blue", (("team", "a"), ("tier", "1"))),
    ("green", (("team", "b"),)),
)
NAMES = tuple(name for name, _ in NAMESPACES)
GPU = "example.com/gpu"
DISK = "disk"
OTHER_PROFILE = "packing"

TAINTS = (
    taint("dedicated", "batch"),
    taint("dedicated", "web"),
    taint("spot", "", "PreferNoSchedule"),
    taint("drain", "", "NoExecute"),
)


def _selector(app):
    return LabelSelector((require("app", "In", app),))


def _where(draw):
    """(namespaces, namespace selector) of a term: by name, by label, or all."""
    how = draw.randrange(3)
    if how == 0:
        return tuple(sorted(draw.sample(NAMES, draw.randint(1, 2)))), None
    if how == 1:
        return (), LabelSelector((require("team", "In", draw.choice("ab")),))
    return (), LabelSelector(())


def _across(draw, app):
    """Pods of any namespaces with anti-affinity or affinity, required or preferred."""
    namespaces, selector = _where(draw)
    wanted = PodAffinityTerm(draw.choice((ZONE, HOSTNAME)), _selector(app), namespaces, selector)
    kind = draw.choice(
        ("pod_anti_affinity", "preferred_pod_affinity", "preferred_pod_anti_affinity")
    )
    if kind.startswith("preferred"):
        wanted = replace(wanted, weight=draw.choice((1, 10, 100)))
    return pod(cpu=50, labels={"app": app}, **{kind: (wanted,)})


def _greedy(draw, app):
    if draw.random() < 0.5:
        return pod(cpu=50, memory=draw.choice((512 * MIB, 3 * GIB)), labels={"app": app})
    return pod(cpu=50, others={GPU: draw.choice((1, 2))}, labels={"app": app})


def _ported(draw, app):
    ports = {
        HostPort(
            draw.choice(("0.0.0.0", "127.0.0.1", "10.0.0.1")),
            draw.choice(("TCP", "UDP")),
            draw.choice((8000, 8001)),
        )
        for _ in range(draw.choice((1, 1, 2)))
    }
    order = sorted(ports, key=lambda each: (each.ip, each.protocol, each.port))
    return pod(cpu=50, host_ports=tuple(order), labels={"app": app})


def _selective(draw, app):
    """Selectors, required and preferred node affinity."""
    how = draw.randrange(4)
    if how == 0:
        return pod(cpu=50, node_selector={DISK: draw.choice(("ssd", "hdd"))})
    if how == 1:
        wanted = require(ZONE, draw.choice(("In", "NotIn")), *draw.sample(ZONES, 2))
        other = require(DISK, "Exists")
        terms = (term(wanted), term(other)) if draw.random() < 0.5 else (term(wanted, other),)
        return pod(cpu=50, required_node_terms=terms)
    if how == 2:
        size = require("size", draw.choice(("Gt", "Lt")), "4")
        return pod(cpu=50, required_node_terms=(term(size),))
    liked = prefer(draw.choice((1, 50, 100)), term(require(DISK, "In", "ssd")))
    return pod(cpu=50, preferred_node_terms=(liked,), labels={"app": app})


def _tolerant(draw, app):
    tolerations = draw.choice(
        (
            (tolerate("dedicated", "batch"),),
            (tolerate("dedicated", operator="Exists"),),
            (tolerate("drain", effect="NoExecute", operator="Exists"),),
            (tolerate(operator="Exists"),),
            (tolerate("spot", effect="PreferNoSchedule", operator="Exists"),),
        )
    )
    return pod(cpu=draw.choice((50, 200)), tolerations=tolerations, labels={"app": app})


def _domains(draw, app):
    """Spread with minDomains, both policies, and the soft kind."""
    hard = draw.random() < 0.6
    constraint = SpreadConstraint(
        draw.choice((ZONE, HOSTNAME)),
        draw.choice((1, 2)),
        "DoNotSchedule" if hard else "ScheduleAnyway",
        _selector(app),
        draw.choice((1, 2, 4)) if hard else 1,
        draw.choice(("Honor", "Ignore")),
        draw.choice(("Honor", "Ignore")),
        (),
    )
    return pod(cpu=50, labels={"app": app}, spread_constraints=(constraint,))


def _protected(draw, app):
    return pod(cpu=draw.choice((300, 600)), priority=draw.choice((0, 5, 50)), labels={"app": app})


def _gated(draw, app):
    return pod(cpu=100, scheduling_gates=("example.com/wait",), labels={"app": app})


WISHES = {
    "across": _across,
    "selective": _selective,
    "tolerant": _tolerant,
    "domains": _domains,
}
"""Kinds that look across nodes when they score, or score in proportion to the best node."""

KINDS = {
    "across": _across,
    "greedy": _greedy,
    "ported": _ported,
    "selective": _selective,
    "tolerant": _tolerant,
    "domains": _domains,
    "protected": _protected,
    "gated": _gated,
}


def _host(draw, name):
    taints = tuple(draw.sample(TAINTS, draw.choice((0, 0, 0, 1, 2))))
    return node(
        name,
        cpu=draw.choice((500, 1000, 2000)),
        memory=draw.choice((2, 4, 8)) * GIB,
        pods=draw.choice((3, 6, 12)),
        others={GPU: draw.choice((1, 2, 4))} if draw.random() < 0.4 else None,
        labels={
            HOSTNAME: name,
            ZONE: draw.choice(ZONES),
            DISK: draw.choice(("ssd", "hdd")),
            "size": draw.choice(("2", "8")),
        },
        taints=tuple(sorted(taints, key=lambda each: (each.key, each.value))),
        unschedulable=draw.random() < 0.08,
    )


def _budgets(draw, apps):
    return tuple(
        DisruptionBudget(namespace, f"keep-{app}", _selector(app), draw.choice((0, 1, 2)))
        for app in apps
        for namespace in NAMES
        if draw.random() < 0.3
    )


def _config(draw, text):
    """The configuration with a profile that packs, and other weights; settings stay unchanged."""
    config = (
        json.loads(text)
        if text
        else {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{}],
        }
    )
    first = config["profiles"][0]
    fit = {
        "name": "NodeResourcesFit",
        "args": {
            "scoringStrategy": {
                "type": draw.choice(("MostAllocated", "LeastAllocated")),
                "resources": [{"name": "cpu", "weight": 3}, {"name": "memory", "weight": 1}],
            }
        },
    }
    weights = [
        {"name": "PodTopologySpread", "weight": draw.choice((1, 5))},
        {"name": "TaintToleration", "weight": draw.choice((1, 7))},
    ]
    plugins = {
        "score": {"enabled": weights, "disabled": [{"name": each["name"]} for each in weights]}
    }
    sort = {key: value for key, value in first.get("plugins", {}).items() if key == "multiPoint"}
    gangs = [each for each in first.get("pluginConfig", ()) if each["name"] == "Coscheduling"]
    config["profiles"].append(
        {
            "schedulerName": OTHER_PROFILE,
            "plugins": plugins | sort,
            "pluginConfig": [fit, *gangs],
        }
    )
    first.setdefault("schedulerName", "default-scheduler")
    return json.dumps(config)


def widened(scenario, seed):
    """The scenario with nodes, pods, namespaces, budgets and profiles of its seed added."""
    draw = random.Random(f"wide {seed}")
    kinds = draw.sample(sorted(KINDS), draw.randint(2, 5))
    apps = ("x", "y", "z")[: draw.randint(1, 3)]
    pods = []
    for number in range(draw.randint(8, 40)):
        kind, app = draw.choice(kinds), draw.choice(apps)
        facts = replace(KINDS[kind](draw, app), namespace=draw.choice(NAMES))
        if draw.random() < 0.3:
            facts = replace(facts, scheduler_name=OTHER_PROFILE)
        name = f"w-{kind}{number}"
        pods.append((PodIdentity(f"uid-{name}", facts.namespace, name), facts))
    hosts = tuple(_host(draw, f"w{number}") for number in range(draw.randint(1, 6)))
    plan = scenario.plan
    cluster = replace(
        plan.cluster,
        namespaces=NAMESPACES,
        budgets=_budgets(draw, apps),
        selecting=tuple(
            SelectsPods("Service", name, "svc", _selector(draw.choice(apps)))
            for name in NAMES
            if draw.random() < 0.5
        ),
    )
    settings = plan.settings.model_copy(
        update={"tie_break": draw.choice(("random", "random", "first"))}
    )
    plan = replace(
        plan,
        settings=settings,
        cluster=cluster,
        config_text=_config(draw, plan.config_text),
        config_source="simulated.yaml",
    )
    waves = [*scenario.waves, *_waves(draw, pods, hosts)]
    waves.sort(key=lambda wave: wave.at_s)
    return replace(
        scenario,
        plan=plan,
        nodes=(*scenario.nodes, *hosts),
        waves=tuple(waves),
        kinds=(*scenario.kinds, *kinds),
    )


def _waves(draw, pods, hosts):
    """Pods in up to three waves; gates open, pods change, taints are added and removed."""
    cut = draw.randint(0, len(pods))
    waves = [Wave(0.0, (), tuple(pods[:cut])), Wave(draw.uniform(0.1, 4.0), (), tuple(pods[cut:]))]
    gated = [(who, facts) for who, facts in pods if facts.scheduling_gates]
    opened = [
        (who, replace(facts, scheduling_gates=())) for who, facts in gated if draw.random() < 0.8
    ]
    if opened:
        waves.append(Wave(draw.uniform(4.2, 6.5), opened=tuple(opened)))
    for host in hosts:
        if draw.random() < 0.3:
            bare = replace(host, taints=(), unschedulable=False)
            waves.append(Wave(draw.uniform(0.5, 7.0), changed=((host, bare),)))
    return [wave for wave in waves if wave != Wave(wave.at_s)]


def by_profile(scenario, seed):
    """The scenario with schedulers that each serve one profile, for some seeds with several."""
    draw, settings = random.Random(f"profiles {seed}"), scenario.plan.settings
    if settings.schedulers < 2 or draw.random() < 0.5:
        return scenario
    shares = {"default-scheduler": settings.schedulers - 1, OTHER_PROFILE: 1}
    settings = settings.model_copy(update={"schedulers": shares})
    return replace(scenario, plan=replace(scenario.plan, settings=settings))


def with_updates(scenario, seed):
    """The scenario with pods that change while they wait, as Kubernetes lets them: other labels,
    one more toleration, smaller requests; gated ones get a selector, some terminate.
    """
    draw = random.Random(f"updates {seed}")
    came_s, facts_of, found = {}, {}, []
    for wave in scenario.waves:
        for who, facts in (*wave.pods, *wave.opened):
            came_s[who.uid], facts_of[who.uid] = wave.at_s, (who, facts)
    for at_s in sorted(draw.uniform(0.2, 7.5) for _ in range(draw.choice((0, 4, 10)))):
        known = sorted(uid for uid in facts_of if came_s[uid] < at_s)
        changed = []
        for uid in draw.sample(known, min(len(known), draw.randint(1, 8))):
            who, facts = facts_of[uid]
            how = _AT_REST if scenario.is_quiet else _AT_ANY_TIME
            facts_of[uid] = who, _updated(draw, facts, draw.choice(how))
            changed.append(facts_of[uid])
        found.append(Wave(at_s, opened=tuple(changed)))
    waves = sorted((*scenario.waves, *found), key=lambda wave: wave.at_s)
    return replace(scenario, waves=tuple(waves))


_AT_ANY_TIME = ("labels", "smaller", "toleration", "deleting")
_AT_REST = ("labels", "labels", "labels", "toleration", "smaller", "selector", "deleting")


def _updated(draw, facts, how):
    if how == "toleration":
        more = draw.choice((tolerate("dedicated", operator="Exists"), tolerate(operator="Exists")))
        return replace(facts, tolerations=(*facts.tolerations, more))
    if how == "smaller":
        less = tuple((name, max(1, amount // 2)) for name, amount in facts.requests)
        return replace(facts, requests=less)
    if how == "selector" and facts.scheduling_gates:
        return replace(facts, node_selector=((DISK, draw.choice(("ssd", "hdd"))),))
    if how == "deleting":
        return replace(facts, is_terminating=True)
    return replace(facts, labels=(("app", draw.choice("xyz")),))
