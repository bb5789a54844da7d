"""Helpers for a user's tests of plugins: nodes, pods, and the answers of a plugin.

few, many = node("few"), node("many")
answers = ask("few_pods:FewPods", pod(), {few: [pod()], many: [pod()] * 50})
assert answers.scores == (99, 50)

The first argument names the module and the class of the plugin. `check_plugin` runs the checks of
the command `roadstead plugin test` on generated nodes and pods (sample fleets).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from roadstead.api.plugin_choice import choose_plugins
from roadstead.cli.plugin.checks import run_checks
from roadstead.cli.plugin.outcome import CheckOutcome
from roadstead.cli.plugin.plugin_under_test import PluginAnswers, answers, plugin_under_test
from roadstead.cli.plugin.samples import sample_fleet
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.nodes.table import NodeTable

SEEDS = 3
"""Number of sample fleets of `check_plugin`, as by default in `roadstead plugin test`."""

GIB_BYTES = 1 << 30


def node(
    name: str,
    *,
    cpu_milli: int = 8000,
    memory_bytes: int = 32 * GIB_BYTES,
    resources: Mapping[str, int] | None = None,
    labels: Mapping[str, str] | None = None,
) -> NodeFacts:
    """Return a node without pods; `resources` are added to CPU and memory."""
    allocatable = {"cpu": cpu_milli, "memory": memory_bytes, **(resources or {})}
    return NodeFacts(
        name=name,
        labels=tuple(sorted((labels or {}).items())),
        allocatable=tuple(sorted(allocatable.items())),
        allocatable_pods=1000,
    )


def pod(
    *,
    cpu_milli: int = 100,
    memory_bytes: int = GIB_BYTES // 8,
    resources: Mapping[str, int] | None = None,
    labels: Mapping[str, str] | None = None,
) -> PodFacts:
    """Return a pod of one container; `resources` are added to its requests of CPU and memory."""
    requests = {"cpu": cpu_milli, "memory": memory_bytes, **(resources or {})}
    return PodFacts(
        labels=tuple(sorted((labels or {}).items())),
        requests=tuple(sorted(requests.items())),
        nonzero_cpu_milli=cpu_milli,
        nonzero_memory_bytes=memory_bytes,
        container_count=1,
    )


def ask(
    path: str,
    asked: PodFacts,
    fleet: Mapping[NodeFacts, Sequence[PodFacts]],
    args: Mapping[str, object] | None = None,
) -> PluginAnswers:
    """Return a plugin's results for a pod on a fleet: nodes, in row order, with their pods.

    path: `module:Class`. asked: the pod. args: as in a configuration. InputError if either is
    wrong.
    """
    table = NodeTable()
    for facts, pods in fleet.items():
        table.add_node(facts)
        for running in pods:
            table.add_pod(facts.name, table.classes.pod_class(running))
    return answers(plugin_under_test(choose_plugins([path]), args), asked, table)


def check_plugin(path: str, args: Mapping[str, object] | None = None) -> None:
    """Run the checks of `roadstead plugin test`; AssertionError with all that fail."""
    subject = plugin_under_test(choose_plugins([path]), args)
    checks = run_checks(subject, [sample_fleet(seed) for seed in range(SEEDS)])
    failed = [f"{each.name}: {each.text}" for each in checks if each.outcome is CheckOutcome.FAILED]
    assert not failed, "\n".join(failed)
