"""Inputs of random decisions: plans with users' plugins, node sampling and extenders, and pods of
few classes, of many, or each of a class of its own.
"""

import json
from dataclasses import replace
from enum import Enum

from roadstead.facts.pod import PodIdentity, Volume
from tests.builders import pod
from tests.peculiar_plugins import (
    ACROSS,
    DECIDING,
    FailsToScore,
    IsMoody,
    LikesDigits,
    LikesFewPods,
    LooksTwice,
    Overshoots,
    config_with,
    peculiar,
)
from tests.simulation import wide

PODS = 14
PLAIN = "uid-own"
"""UID prefixes of pods that differ in size alone, and of pods that each have a size of their own.
"""

SIZES = (100, 250, 300, 500, 700, 900)
"""Pod sizes, in millicores, that users' plugins treat specially."""

ACROSS_NODES = ("across", "domains")
"""Kinds of pods whose scores depend on the nodes that a search or an extender leaves."""

LONELY = (LikesDigits, LikesFewPods, Overshoots, FailsToScore, LooksTwice)
SCORING = tuple(each.name for each in LONELY)
NORMALIZING = ("NodeAffinity", "TaintToleration", "PodTopologySpread", "InterPodAffinity")


class Style(Enum):
    """The properties that a random cluster tests."""

    LISTS = "lists"
    """Workers list the best of all nodes: no users' plugins, and every pod has its own size."""
    ALONE = "alone"
    """One user's plugin alone scores few classes of pods, again and again."""
    KINDS = "kinds"
    """Pods of two classes look across nodes, and differ in their requests."""
    ANY = "any"

    @classmethod
    def of(cls, draw):
        return draw.choice((*[cls.LISTS] * 3, *[cls.ALONE] * 2, *[cls.KINDS] * 2, *[cls.ANY] * 6))


def plan_for(plan, draw, opinions, style):
    """Return the plan with users' plugins, a share of nodes to score and an extender, or without
    scores.
    """
    if style is not Style.ANY:
        chosen = [draw.choice(LONELY)] if style is Style.ALONE else []
        chosen = [each for each in chosen if each.name not in plan.config_text]
        document = json.loads(config_with(*(e.name for e in chosen), config=plan.config_text))
        if chosen:
            scores = {"disabled": [{"name": "*"}], "enabled": [{"name": chosen[0].name}]}
            for each in document["profiles"]:
                each.setdefault("plugins", {})["score"] = scores
        settings = plan.settings.model_copy(update={"score_nodes": "all"})
        plugins = (*plan.plugins, *peculiar(*(each.name for each in chosen)))
        text = json.dumps(document)
        return replace(plan, settings=settings, config_text=text, plugins=plugins)
    few = draw.choice((0, 1, 2, 3, 5))
    chosen = draw.sample((*DECIDING, *ACROSS), few) if draw.random() < 0.7 else [IsMoody]
    chosen += [Overshoots] if draw.random() < 0.15 else []
    names = [each.name for each in chosen]
    names = [name for name in names if name not in plan.config_text]
    document = json.loads(config_with(*names, config=plan.config_text))
    share, scored = draw.choice((None, 0, 1, 40, 70)), "config"
    if share is None or draw.random() < 0.3:
        # All nodes are scored whatever the share, so that only an extender makes `searches_nodes`
        # true.
        scored = "all"
    if share is not None:
        document["percentageOfNodesToScore"] = share
    for point, enabled in _points(draw, names):
        for each in document["profiles"]:
            each.setdefault("plugins", {})[point] = {"disabled": [{"name": "*"}]} | enabled
    if opinions is not None:
        document["extenders"] = [opinions.config()]
    settings = plan.settings.model_copy(update={"score_nodes": scored})
    return replace(
        plan,
        settings=settings,
        config_text=json.dumps(document),
        config_source="at random",
        plugins=(*plan.plugins, *peculiar(*names)),
    )


def wide_pods(draw):
    """Return pods with more manifest fields, of few classes, and of sizes that users' plugins treat
    specially.
    """
    among = draw.choice((wide.KINDS.keys() - {"gated"}, ACROSS_NODES))
    kinds = draw.sample(sorted(among), min(len(among), draw.choice((1, 2, 4))))
    sizes = draw.sample(SIZES, 2)
    for number in range(draw.randint(2, 8)):
        facts = wide.KINDS[draw.choice(kinds)](draw, draw.choice("xy"))
        if draw.random() < 0.8:
            size = draw.choice(sizes)
            others = tuple(each for each in facts.requests if each[0] != "cpu")
            facts = replace(facts, requests=(("cpu", size), *others), nonzero_cpu_milli=size)
        yield PodIdentity(f"uid-m{number}", "default", f"m{number}"), facts


def alike(draw):
    """Return pods of two classes that differ only in size, which users' plugins treat specially."""
    sizes = draw.sample(SIZES, 2)
    for number in range(PODS):
        name = f"alike{number}"
        yield PodIdentity(f"uid-{name}", "default", name), pod(cpu=draw.choice(sizes))


def of_kinds(draw):
    """Return pods of two classes that look across nodes: some fit everywhere, others almost
    nowhere.
    """
    kinds = [wide.KINDS[draw.choice(ACROSS_NODES)](draw, draw.choice("xy")) for _ in range(2)]
    for number in range(PODS):
        name, by = f"kind{number}", draw.choice((0, 50, 300, 900, 3000))
        yield PodIdentity(f"uid-{name}", "default", name), larger(draw.choice(kinds), by)


def own_sizes(draw):
    """Return pods that are each the only one of their class."""
    for number, size in enumerate(draw.sample(range(50, 900), draw.randint(6, PODS))):
        name = f"own{number}"
        selector = draw.choice((None, None, None, None, {"disk": "ssd"}))
        yield (
            PodIdentity(f"{PLAIN}{number}", "default", name),
            pod(cpu=size, node_selector=selector),
        )


def with_claim(draw, number):
    """Return a waiting pod, perhaps one of several that want the same few local volumes."""
    claim = (("claimName", f"local{draw.randrange(2)}"),)
    facts = pod(cpu=50, volumes=(Volume("data", "persistentVolumeClaim", claim),))
    return PodIdentity(f"uid-v{number}", "default", f"v{number}"), facts


def _points(draw, names):
    """Return extension points that are configured separately, each with the plugins that stay
    enabled.
    """
    few, scoring = draw.random(), [name for name in names if name in SCORING]
    if few < 0.15:
        yield "score", {}
    elif few < 0.45:
        # With only one, every change to it would apply to all.
        either = scoring if scoring and draw.random() < 0.7 else NORMALIZING
        kept = draw.sample(either, min(len(either), draw.choice((1, 1, 2))))
        yield "score", {"enabled": [{"name": name} for name in kept]}
    if draw.random() < 0.15:
        yield "postFilter", {}


def larger(facts, by):
    more = tuple((name, size + by * (name == "cpu")) for name, size in facts.requests)
    return replace(facts, requests=more, nonzero_cpu_milli=facts.nonzero_cpu_milli + by)
