"""Hooks and declarations that would make a plugin faster, for `roadstead plugin test`.

Decisions are the same without them. A declaration is listed if it holds on the sample fleets; a
missing method is listed without a trial, with what it would save.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from roadstead.cli.plugin.checks import CheckFunction, Fleets, check_reads, check_shapes
from roadstead.cli.plugin.outcome import Check, CheckOutcome
from roadstead.cli.plugin.plugin_under_test import PluginUnderTest
from roadstead.framework.plugin import (
    FilterPlugin,
    Plugin,
    Reads,
)
from roadstead.framework.user_plugins import factories_of
from roadstead.plugins.in_tree import in_tree_registry


def missing_hooks_check(subject: PluginUnderTest, fleets: Fleets) -> Check | None:
    """List the hooks of `docs/plugins.md` that would save time; None if none is missing."""
    advice = [*_advice(subject, fleets)]
    if not advice:
        return None
    return Check("left out", CheckOutcome.OK, "; ".join(advice), len(advice))


def _advice(subject: PluginUnderTest, fleets: Fleets) -> Iterator[str]:
    plugin_class = subject.plugin_class
    lower_reads = _lower_reads(subject, fleets)
    if lower_reads is not None:
        yield (
            f"reads = Reads.{lower_reads.name} holds on these fleets: fewer rows would be "
            f"evaluated again than with {plugin_class.reads.name}"
        )
    elif plugin_class.reads is Reads.CLUSTER and plugin_class.effect is Plugin.effect:
        yield "without effect, each placement invalidates the answers for every other pod"
    if not vars(plugin_class).get("shares_by_shape", False) and _holds(
        _with_declarations(subject, shares_by_shape=True), fleets, check_shapes
    ):
        yield (
            "shares_by_shape = True holds on these fleets: pods that differ only in amounts "
            "would be evaluated once"
        )
    # The binder checks such filters again at each bind.
    reads_pods = issubclass(plugin_class, FilterPlugin) and plugin_class.reads is not Reads.NODE
    if reads_pods and getattr(plugin_class, "count_passing", None) is FilterPlugin.count_passing:
        yield "without count_passing, the binder calls Filter for each pod of a batch"


def _lower_reads(subject: PluginUnderTest, fleets: Fleets) -> Reads | None:
    """Return the narrowest `reads` that holds on these fleets; None: no narrower than declared."""
    # From the narrowest to the widest.
    for candidate in Reads:
        if candidate >= subject.plugin_class.reads:
            return None
        if _holds(_with_declarations(subject, reads=candidate), fleets, check_reads):
            return candidate
    return None


def _with_declarations(subject: PluginUnderTest, **declarations: object) -> PluginUnderTest:
    """Return the plugin as a subclass with these declarations (class attributes)."""
    plugin_class: type[Plugin] = type(
        subject.plugin_class.__name__, (subject.plugin_class,), declarations
    )
    registry = in_tree_registry().merged(
        factories_of({plugin_class.name: plugin_class}, is_strict=True)
    )
    return replace(subject, plugin_class=plugin_class, registry=registry)


def _holds(subject: PluginUnderTest, fleets: Fleets, check: CheckFunction) -> bool:
    try:
        return all(wrong is None for fleet in fleets for wrong in check(subject, fleet))
    except Exception:
        # With a declaration that its author did not write, the plugin may raise anything.
        return False
