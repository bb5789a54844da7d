"""Whether the hooks outside Filter and Score are called, in a complete run on one sample fleet.

The run (`LocalRun`) has queue, cache and binder, in virtual time and in this process. After its
first decisions some pods are deleted and a node is added, events for which hints are called.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Final

from roadstead.cli.plugin.outcome import Check, CheckOutcome, failed_check
from roadstead.cli.plugin.plugin_under_test import PluginUnderTest
from roadstead.cli.plugin.samples import SampleFleet
from roadstead.facts.node import renamed_node
from roadstead.framework.guarded import PluginFailure
from roadstead.framework.plugin import EnqueueExtensions
from roadstead.framework.plugin_calls import RUNNING_CALLS, PluginCall
from roadstead.local.run import LocalRun

HINT = "QueueingHint"
"""The name of a queueing hint in failures and counts; it is no extension point."""

AFTER_BACKOFF_S = 60.0
"""Virtual time at which every backoff has ended."""

DELETED_EVERY = 3
"""Every nth bound pod is deleted."""

CALL_CONDITIONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "PreEnqueue": "a pending pod",
        "QueueSort": "a pending pod",
        "PostFilter": "a pod that fits on no node",
        "Reserve": "a pod that fits on a node",
        "Permit": "a pod that fits on a node",
        "PreBind": "a pod that fits on a node and that the plugin permits",
        "Bind": "a pod that fits on a node; a configuration that disables DefaultBinder at bind, "
        "which binds every pod before it",
        "PostBind": "a pod that fits on a node and that the plugin permits",
        HINT: "a pod that the plugin first refuses (the events are a deleted pod and a new node)",
    }
)
"""Hook → what a fleet must contain for the hook to be called."""


def hooks_check(subject: PluginUnderTest, fleet: SampleFleet) -> Check | None:
    """Check that hooks outside Filter and Score are called; None if the plugin has none."""
    try:
        hooks = _hooks_of(subject)
        if not hooks:
            return None
        with _collect_failures() as failures, _count_calls() as calls:
            _run_and_change(LocalRun(subject.plan), fleet)
    except Exception as failure:
        # The plugin is the user's: any exception is a finding.
        return failed_check("hooks", fleet, failure)
    if failures:
        return failed_check("hooks", fleet, failures[0], calls.total())
    counts = ", ".join(f"{hook} {calls[hook]:,}" for hook in hooks)
    uncalled = [hook for hook in hooks if not calls[hook]]
    if not uncalled:
        return Check("hooks", CheckOutcome.OK, f"calls: {counts}", calls.total())
    texts = "; ".join(
        f"{hook} was never called: it needs {CALL_CONDITIONS[hook]}" for hook in uncalled
    )
    return Check("hooks", CheckOutcome.WARNING, f"{texts} (--pods, --cluster)", calls.total())


def _hooks_of(subject: PluginUnderTest) -> list[str]:
    """Return the plugin's hooks outside Filter and Score, by their names in failures."""
    # A failure names PostFilter where the configuration has postFilter.
    points = {point[0].upper() + point[1:] for point in subject.points}
    hooks = [hook for hook in CALL_CONDITIONS if hook in points]
    plugin = subject.build()
    if isinstance(plugin, EnqueueExtensions) and any(
        each.hint is not None for each in plugin.events_to_register()
    ):
        hooks.append(HINT)
    return hooks


def _run_and_change(run: LocalRun, fleet: SampleFleet) -> None:
    run.add_nodes(fleet.nodes)
    pods = [(identity, facts) for identity, facts, _ in fleet.running]
    run.add_running(pods, [name for _, _, name in fleet.running])
    run.submit(fleet.pods)
    run.run(0.0)
    bound = [*run.placements()]
    run.delete_pods(bound[::DELETED_EVERY])
    node = fleet.nodes[0]
    run.add_nodes([renamed_node(node, f"{node.name}-new")])
    run.run(AFTER_BACKOFF_S)


@contextmanager
def _count_calls() -> Iterator[Counter[str]]:
    """Count the calls of users' plugins in this process, by hook."""
    calls: Counter[str] = Counter()

    def count(call: PluginCall | None) -> None:
        # None: the end of a call.
        if call is not None:
            calls[call.point] += 1

    # `mark` is called at the start and at the end of every call of a plugin.
    mark_before, RUNNING_CALLS.mark = RUNNING_CALLS.mark, count
    try:
        yield calls
    finally:
        RUNNING_CALLS.mark = mark_before


class _FailureHandler(logging.Handler):
    """Keep the failures of plugins; each is the first argument of its log record."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.failures: list[PluginFailure] = []

    def emit(self, record: logging.LogRecord) -> None:
        failure = record.args[0] if isinstance(record.args, tuple) and record.args else None
        if isinstance(failure, PluginFailure):
            self.failures.append(failure)


@contextmanager
def _collect_failures() -> Iterator[list[PluginFailure]]:
    """Collect failures of plugins from the log, because a run logs them and continues."""
    log, handler = logging.getLogger("roadstead.plugins"), _FailureHandler()
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield handler.failures
    finally:
        log.removeHandler(handler)
        log.setLevel(level)
