"""Profile: the plugins of one scheduler name, instantiated, in order of execution.

Upstream: pkg/scheduler/framework/runtime/framework.go (NewFramework).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from copy import copy
from dataclasses import dataclass
from operator import attrgetter
from typing import TypeVar

from roadstead.config.model import ProfileConfig
from roadstead.facts.pod import PodFacts
from roadstead.framework.events import EVERYTHING, RegisteredEvent
from roadstead.framework.failures import error_of_point
from roadstead.framework.plugin import (
    EXTENSION_POINTS,
    ONLY_SUCCEED,
    BindPlugin,
    Effect,
    EnqueueExtensions,
    FilterPlugin,
    Handle,
    PermitPlugin,
    Plugin,
    PodDeletionPlugin,
    PostBindPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreparesScore,
    PreScorePlugin,
    QueueSortPlugin,
    Reads,
    ReservePlugin,
    ScorePlugin,
)
from roadstead.framework.registry import Registry
from roadstead.framework.unprepared import prepared, unprepared_score
from roadstead.nodes.interning import CodeInterner
from roadstead.nodes.pod_class import PodClass, PodClasses
from roadstead.protocol.errors import InputError
from roadstead.protocol.status import SUCCESS, Code, Status
from roadstead.storage import BindingProfiles

PluginT = TypeVar("PluginT", bound=Plugin)

UNSIGNED = -1
"""Instead of the code of a signature, for a class for which `sign` of a plugin returns None."""


@dataclass(frozen=True, slots=True)
class WeightedScore:
    plugin: ScorePlugin
    weight: int


class Profile:
    """The plugins of a profile, one tuple per extension point, in order of execution.

    preparing_score: plugins that are called at PreScore, including score plugins that prepare Score
    without being enabled there. unchecked_scores: indices in `score` of users' plugins whose raw
    scores are final, and whose range must therefore be checked. unprepared_score: the Error of a
    score plugin without the PreScore that it needs. gang_plugins: names of the plugins that place
    gangs. cross_node: plugins from PreFilter to Score whose answers depend on other nodes.
    binds_without_plugins: no plugin is called from Reserve to PostBind, as none does anything.
    pod_deletion: the plugins that are notified of deleted pods. waiting: the pods that wait for
    Permit. storage: claims and volumes. budgets: disruption budgets.
    """

    def __init__(self, config: ProfileConfig, registry: Registry, handle: Handle) -> None:
        self.scheduler_name = config.scheduler_name
        self._config = config
        # By name: a plugin that is enabled at several points is one object.
        self._built: dict[str, Plugin] = {}
        for ref in (ref for refs in config.plugins.values() for ref in refs):
            if ref.name not in self._built:
                args = config.args.get(ref.name)
                self._built[ref.name] = registry.build(ref.name, args, handle)
        self.pre_enqueue = self._at("preEnqueue", PreEnqueuePlugin)
        self.queue_sort = self._at("queueSort", QueueSortPlugin)[0]
        self.pre_filter = self._at("preFilter", PreFilterPlugin)
        filters = self._at("filter", FilterPlugin)
        # `prepared` replaces a filter that lacks its PreFilter by one that fails.
        self.filter = tuple(prepared(plugin, self.pre_filter) for plugin in filters)
        self.post_filter = self._at("postFilter", PostFilterPlugin)
        self.pre_score = self._at("preScore", PreScorePlugin)
        self.score = tuple(
            WeightedScore(plugin, ref.weight)
            for plugin, ref in zip(self._at("score", ScorePlugin), config.at("score"), strict=True)
        )
        self.unchecked_scores = tuple(
            index
            for index, each in enumerate(self.score)
            if each.plugin.is_guarded and not each.plugin.normalizes
        )
        scoring = (each.plugin for each in self.score)
        self.unprepared_score = unprepared_score(scoring, self.pre_score)
        self.reserve = self._at("reserve", ReservePlugin)
        self.permit = self._at("permit", PermitPlugin)
        self.pre_bind = self._at("preBind", PreBindPlugin)
        self.bind = self._at("bind", BindPlugin)
        self.post_bind = self._at("postBind", PostBindPlugin)
        self.binds_without_plugins = self._has_idle_plugins_from_reserve()
        self.gang_plugins = frozenset(
            name for name, plugin in self._built.items() if plugin.places_gangs
        )
        self.pod_deletion = _of_type(self._built.values(), PodDeletionPlugin)
        self.waiting = handle.waiting
        self.storage = handle.storage
        self.budgets = handle.cluster.budgets
        # Code of each class's signature, or UNSIGNED. `_signatures` numbers the signatures.
        self._signature_of: dict[PodClass, int] = {}
        self._signatures: CodeInterner[Hashable] = CodeInterner()
        self._group_plugins()

    def _group_plugins(self) -> None:
        """Group the plugins from PreFilter to Score by what they declare.

        _signing: all plugins on whose answers a decision depends, whose `sign` is called.
        _with_state_version, _substituting: those that override the method of that name.
        """
        filtering: Iterable[Plugin] = (*self.pre_filter, *self.filter)
        scoring: Iterable[Plugin] = (*self.pre_score, *(each.plugin for each in self.score))
        self.cross_node = tuple(
            dict.fromkeys(each for each in (*filtering, *scoring) if each.reads is Reads.CLUSTER)
        )
        not_at_pre_score = (each for each in scoring if not isinstance(each, PreScorePlugin))
        self.preparing_score = _of_type((*self.pre_score, *not_at_pre_score), PreparesScore)
        self._signing = tuple(dict.fromkeys((*filtering, *scoring, *self.post_filter)))
        self._with_state_version = tuple(
            each
            for each in dict.fromkeys((*filtering, *scoring))
            if _overrides(each, "state_version")
        )
        # Users' plugins may read what a substitute leaves out.
        has_users_plugins = any(each.is_guarded for each in self._signing)
        substituting = (each for each in self._signing if _overrides(each, "substitute_claims"))
        self._substituting = () if has_users_plugins else tuple(substituting)
        # By `shape_or_class`: the plugins whose `state_version` of such pods is not None.
        self._stateful: dict[int, tuple[Plugin, ...]] = {}
        self.shares_by_shape = all(
            # Not inherited, because a subclass may override methods that it describes.
            vars(type(plugin)).get("shares_by_shape", False)
            for plugin in self._signing
        )
        # Class → a number that classes with equal effects share. `PodClass.effect_shape` ignores
        # the names of claims of devices, which effects of users' plugins may depend on.
        self.effect_key: Callable[[PodClass], int] = (
            attrgetter("effect_shape")
            if self.shares_by_shape and not has_users_plugins
            else self.shape_or_class
        )
        # If the plugins share by shape, only those that read ROW may depend on amounts of requests.
        self._signing_amounts = tuple(each for each in self._signing if each.reads is Reads.ROW)
        self._signing_shapes = tuple(each for each in self._signing if each.reads is not Reads.ROW)
        # The codes of the signatures by `_signing_shapes`, and the code for each shape.
        self._shapes: CodeInterner[Hashable] = CodeInterner()
        self._shape_parts: dict[int, tuple[Hashable, ...] | None] = {}

    def with_filter(self, restriction: FilterPlugin) -> Profile:
        """Return a copy with one more filter before all others; it has the same signatures.

        It has no PostFilter: a pod that fits nowhere is decided again without the restriction.
        """
        restricted = copy(self)
        restricted.filter, restricted.post_filter = (restriction, *self.filter), ()
        restricted._with_state_version = (restriction, *self._with_state_version)
        restricted._stateful = {}
        return restricted

    def _at(self, point: str, plugin_class: type[PluginT]) -> tuple[PluginT, ...]:
        plugins = []
        for ref in self._config.at(point):
            plugin = self._built[ref.name]
            if not isinstance(plugin, EXTENSION_POINTS[point]) or not isinstance(
                plugin, plugin_class
            ):
                raise InputError(f"does not implement {point}", obj="plugin", value=f'"{ref.name}"')
            plugins.append(plugin)
        return tuple(plugins)

    def _has_idle_plugins_from_reserve(self) -> bool:
        """Whether no plugin does anything from Reserve to PostBind: none of them is called then."""
        only_succeed = (
            *(_only_succeeds(each, "reserve", "unreserve") for each in self.reserve),
            *(_only_succeeds(each, "pre_bind") for each in self.pre_bind),
            # A Success of the first plugin ends Bind.
            *(_only_succeeds(each, "bind") for each in self.bind[:1]),
        )
        return bool(self.bind) and all(only_succeed) and not (self.permit or self.post_bind)

    def registered_events(self) -> dict[str, tuple[RegisteredEvent, ...]]:
        """Return the events that each plugin of the profile registers, by plugin name."""
        return {
            name: plugin.events_to_register()
            if isinstance(plugin, EnqueueExtensions)
            else EVERYTHING
            for name, plugin in self._built.items()
        }

    def run_pre_enqueue(self, pod: PodFacts) -> Status:
        """Run PreEnqueue; return the first refusal, or Success."""
        for plugin in self.pre_enqueue:
            status = plugin.pre_enqueue(pod)
            if not status.is_success:
                status = Status(status.code, status.reasons, plugin.name)
                is_failure = status.code is Code.ERROR
                return error_of_point("PreEnqueue", status) if is_failure else status
        return SUCCESS

    def signature_of(self, pod: PodClass, uid: str) -> Hashable:
        """Return the signature of a class as a small key that hashes fast; computed once per class.

        Pods of one signature get one key. If `sign` of a plugin returns None, the key is the pod's
        UID and its class, since the class of a pod changes when it is nominated or updated.
        """
        known = self._signature_of.get(pod)
        if known is None:
            parts = self._parts_by_shape(pod) if self.has_shape(pod) else None
            parts = _signed(pod.facts, self._signing) if parts is None else parts
            known = UNSIGNED if parts is None else self._signatures.code(parts)
            self._signature_of[pod] = known
        return (self.scheduler_name, (uid, pod) if known == UNSIGNED else known)

    def _parts_by_shape(self, pod: PodClass) -> tuple[Hashable, ...] | None:
        """Return a signature whose parts that ignore amounts are computed once per shape."""
        shape = pod.shape
        if shape not in self._shape_parts:
            of_shape = _signed(pod.facts, self._signing_shapes)
            self._shape_parts[shape] = None if of_shape is None else (self._shapes.code(of_shape),)
        of_shape = self._shape_parts[shape]
        if of_shape is None:
            return None
        of_amounts = tuple(plugin.sign(pod.facts) for plugin in self._signing_amounts)
        return None if None in of_amounts else (*of_shape, *of_amounts)

    def has_shape(self, pod: PodClass) -> bool:
        """Whether results for a class are valid for its whole shape (`Plugin.shares_by_shape`).

        False for a nominated pod: its requests count on its node when other pods are filtered.
        """
        return self.shares_by_shape and not pod.facts.nominated_node_name

    def shape_or_class(self, pod: PodClass) -> int:
        """Return a number that classes with equal results share.

        The number of the shape, or, if the plugins do not share by shape, a negative number of the
        class.
        """
        return pod.shape if self.shares_by_shape else -1 - pod.index

    def is_signed(self, pod: PodClass) -> bool:
        """Whether all pods of a class have one key; to be called after `signature_of`."""
        return self._signature_of[pod] != UNSIGNED

    def state_version(self, pod: PodClass) -> Hashable:
        """Return the plugins' own state of a pod, outside the table; see `Plugin.state_version`."""
        stateful = self._stateful_for(pod)
        return tuple([plugin.state_version(pod) for plugin in stateful]) if stateful else None

    def prefilter_state_version(self, pod: PodClass) -> Hashable:
        """Return the plugins' own state of a pod without what Filter reads at each call."""
        return tuple([plugin.prefilter_state_version(pod) for plugin in self._stateful_for(pod)])

    def _stateful_for(self, pod: PodClass) -> tuple[Plugin, ...]:
        """Return the plugins whose `state_version` is not None for pods of this shape.

        For the others it stays None (`Plugin.state_version`).
        """
        key = self.shape_or_class(pod)
        found = self._stateful.get(key)
        if found is None:
            found = self._stateful[key] = tuple(
                [each for each in self._with_state_version if each.state_version(pod) is not None]
            )
        return found

    def substitute(self, pod: PodClass, classes: PodClasses) -> PodClass | None:
        """Return the class by which a pod may be evaluated in place of its own; None for none.

        Pods that differ only in the names of their device claims have one substitute.
        """
        if not (self._substituting and self.has_shape(pod)):
            return None
        for plugin in self._substituting:
            claims = plugin.substitute_claims(pod.facts)
            if claims is not None:
                return classes.with_claims(pod, claims)
        return None

    def substitutes_for(self, substitute: PodClass, pod: PodClass) -> bool:
        """Whether a pod's `substitute`, as returned earlier, still gets the pod's answers."""
        for plugin in self._substituting:
            if plugin.substitutes_for(substitute.facts, pod.facts):
                return True
        return False

    @property
    def binds_volumes(self) -> bool:
        """Whether claims of volumes of this profile's pods are bound when the pods are placed."""
        return any(plugin.binds_volumes for plugin in self.reserve)

    @property
    def binds_devices(self) -> bool:
        """Whether claims of devices of this profile's pods are bound when the pods are placed."""
        return any(plugin.binds_devices for plugin in self.reserve)

    def effects(self, placed: PodClass) -> tuple[Effect, ...]:
        """Return which answers for other nodes a pod changes, wherever it is placed or removed."""
        return effects_of(self.cross_node, placed)


def effects_of(plugins: Iterable[Plugin], placed: PodClass) -> tuple[Effect, ...]:
    """Return a pod's effects on the answers of some plugins."""
    return tuple([plugin.effect(placed) for plugin in plugins])


def binding_profiles(profiles: Iterable[Profile]) -> BindingProfiles:
    """Return which of these profiles bind claims."""
    return BindingProfiles.of(
        (each.scheduler_name, each.binds_volumes, each.binds_devices) for each in profiles
    )


def any_may_change(effects: Iterable[Effect], pod: PodClass) -> bool:
    """Whether some effects may change the answers for a pod."""
    return any(each.may_change(pod) for each in effects)


def _overrides(plugin: Plugin, method: str) -> bool:
    return getattr(type(plugin), method) is not getattr(Plugin, method)


def _of_type(plugins: Iterable[Plugin], plugin_class: type[PluginT]) -> tuple[PluginT, ...]:
    return tuple(dict.fromkeys(plugin for plugin in plugins if isinstance(plugin, plugin_class)))


def _signed(pod: PodFacts, plugins: Iterable[Plugin]) -> tuple[Hashable, ...] | None:
    """Return what the answers of some plugins depend on; None if `sign` of one returns None."""
    # Which nominated pods a pod yields to depends on its priority and on its own nomination.
    nominated = pod if pod.nominated_node_name else None
    parts: list[Hashable] = [pod.priority, nominated]
    for plugin in plugins:
        part = plugin.sign(pod)
        if part is None:
            return None
        parts.append(part)
    return tuple(parts)


def _only_succeeds(plugin: Plugin, *methods: str) -> bool:
    return all(getattr(type(plugin), method) in ONLY_SUCCEED for method in methods)
