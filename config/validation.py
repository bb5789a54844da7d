"""Check the defaulted configuration: the stage `validate`.

Every check follows upstream's pkg/scheduler/apis/config/validation/validation.go and
component-base/config/validation/validation.go; `config.validation_args` checks plugin arguments.
Each function yields the problems of the part of the document that it is named after.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from roadstead.config.errors import Problem, duplicate, invalid, required
from roadstead.config.go_struct import API_VERSION, to_document, with_sorted_keys
from roadstead.config.intree import EXTENSION_POINTS, REMOVED_PLUGINS
from roadstead.config.schema import (
    ClientConnection,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    LeaderElection,
    PluginConfig,
    PluginSet,
    V1Extender,
    V1Plugin,
)
from roadstead.config.validation_args import validate_args
from roadstead.protocol.names import is_extended_resource, qualified_name_errors

_REMOVED_RULE: Final = (
    f'was invalid in version "v1" (KubeSchedulerConfiguration is version "{API_VERSION}")'
)
# Upstream's table of validators has this key instead of "NodeResourcesFit": arguments of
# NodeResourcesFit are checked only when profiles are built, and a plugin of this name never passes.
_MISNAMED_VALIDATOR: Final = "NodeResourcesFitArgs"


def validate(config: KubeSchedulerConfiguration) -> list[Problem]:
    """Return everything that is out of range; empty if the configuration can be built."""
    assert config.parallelism is not None, "defaults come before validation"
    assert config.pod_initial_backoff_seconds is not None
    assert config.pod_max_backoff_seconds is not None
    problems = [
        *_client_connection(config.client_connection),
        *_leader_election(config.leader_election),
    ]
    if config.parallelism <= 0:
        rule = "should be an integer value greater than zero"
        problems.append(invalid("parallelism", config.parallelism, rule))
    problems += _profiles(config.profiles or [])
    problems += _percentage("percentageOfNodesToScore", config.percentage_of_nodes_to_score)
    initial_s, max_s = config.pod_initial_backoff_seconds, config.pod_max_backoff_seconds
    if initial_s <= 0:
        problems.append(invalid("podInitialBackoffSeconds", initial_s, "must be greater than 0"))
    if max_s < initial_s:
        rule = "must be greater than or equal to PodInitialBackoffSeconds"
        problems.append(invalid("podMaxBackoffSeconds", max_s, rule))
    return [*problems, *_extenders(config.extenders or [])]


def _client_connection(client: ClientConnection) -> Iterator[Problem]:
    if client.burst < 0:
        yield invalid("clientConnection.burst", client.burst, "must be non-negative")


def _leader_election(election: LeaderElection) -> Iterator[Problem]:
    # Names left empty were defaulted, so upstream's "required" checks cannot fire.
    if not election.leader_elect:
        return
    for field in ("lease_duration", "renew_deadline", "retry_period"):
        duration = getattr(election, field)
        if duration.ns <= 0:
            path = f"leaderElection.{LeaderElection.model_fields[field].alias}"
            yield invalid(path, str(duration), "must be greater than zero")
    if election.lease_duration <= election.renew_deadline:
        shown = str(election.renew_deadline)
        rule = "must be greater than `RenewDeadline`"
        yield invalid("leaderElection.leaseDuration", shown, rule)
    if election.resource_lock != "leases":
        rule = 'resourceLock value must be "leases"'
        yield invalid("leaderElection.resourceLock", election.resource_lock, rule)


def _profiles(profiles: list[KubeSchedulerProfile]) -> Iterator[Problem]:
    earlier_names: set[str] = set()
    for i, profile in enumerate(profiles):
        path, name = f"profiles[{i}]", profile.scheduler_name or ""
        if not name:
            yield required(f"{path}.schedulerName")
        yield from _percentage(
            f"{path}.percentageOfNodesToScore", profile.percentage_of_nodes_to_score
        )
        yield from _removed_plugins(path, profile)
        yield from _plugin_configs(path, profile.plugin_config or ())
        if name in earlier_names:
            # Upstream's value is the other profile's path, a *field.Path, which prints as {}.
            yield duplicate(f"{path}.schedulerName", {})
        earlier_names.add(name)
    yield from _common_queue_sort(profiles)


def _percentage(path: str, percentage: int | None) -> Iterator[Problem]:
    if percentage is not None and not 0 <= percentage <= 100:
        yield invalid(path, percentage, "not in valid range [0-100]")


def _removed_plugins(path: str, profile: KubeSchedulerProfile) -> Iterator[Problem]:
    sets = profile.plugins.sets() if profile.plugins else {}
    for point in EXTENSION_POINTS:
        for i, plugin in enumerate(sets[point].enabled or ()):
            if plugin.name in REMOVED_PLUGINS:
                where = f"{path}.plugins.{point}.enabled[{i}]"
                yield invalid(where, plugin.name, _REMOVED_RULE)


def _plugin_configs(path: str, configs: Iterable[PluginConfig]) -> Iterator[Problem]:
    earlier_names: set[str] = set()
    for i, config in enumerate(configs):
        where = f"{path}.pluginConfig[{i}]"
        if config.name in earlier_names:
            yield duplicate(where, config.name)
        earlier_names.add(config.name)
        if config.name in REMOVED_PLUGINS:
            yield invalid(where, config.name, _REMOVED_RULE)
        elif config.name == _MISNAMED_VALIDATOR:
            shown = "null" if config.args is None else with_sorted_keys(config.args)
            yield invalid(f"{where}.args", shown, "has to match plugin args")
        else:
            yield from validate_args(f"{where}.args", config.args)


def _common_queue_sort(profiles: list[KubeSchedulerProfile]) -> Iterator[Problem]:
    first = _queue_sort(profiles[0])
    enabled = first.enabled or []
    if len(enabled) > 1:
        rule = "only one queue sort plugin can be enabled"
        yield invalid("profiles[0].plugins.queueSort.Enabled", len(enabled), rule)
    name = enabled[0].name if enabled else ""
    args = None
    if name:
        # As upstream, later arguments of a plugin replace earlier ones.
        all_args = [c.args for c in profiles[0].plugin_config or () if c.name == name]
        args = all_args[-1] if all_args else None
    for i, profile in enumerate(profiles[1:], start=1):
        current = _queue_sort(profile)
        if current != first:
            rule = "must be the same for all profiles"
            yield invalid(f"profiles[{i}].plugins.queueSort", _internal_set(current), rule)
        for config in profile.plugin_config or ():
            if config.name == name and config.args != args:
                where = f"profiles[{i}].pluginConfig.args"
                rule = "queueSort must be the same for all profiles"
                yield invalid(where, with_sorted_keys(to_document(config.args)), rule)


def _queue_sort(profile: KubeSchedulerProfile) -> PluginSet:
    return profile.plugins.queue_sort if profile.plugins else PluginSet()


def _internal_set(plugin_set: PluginSet) -> dict[str, object]:
    """Render a set as Go prints the internal type, whose fields have no JSON names."""

    def internal(plugins: list[V1Plugin] | None) -> list[dict[str, object]] | None:
        return [{"Name": p.name, "Weight": p.weight or 0} for p in plugins or ()] or None

    return {"Enabled": internal(plugin_set.enabled), "Disabled": internal(plugin_set.disabled)}


def _extenders(extenders: list[V1Extender]) -> Iterator[Problem]:
    managed: set[str] = set()
    for i, extender in enumerate(extenders):
        path = f"extenders[{i}]"
        if extender.prioritize_verb and extender.weight <= 0:
            rule = "must have a positive weight applied to it"
            yield invalid(f"{path}.weight", extender.weight, rule)
        for j, resource in enumerate(extender.managed_resources or ()):
            where = f"{path}.managedResources[{j}].name"
            yield from _extended_resource(where, resource.name)
            if resource.name in managed:
                yield invalid(where, resource.name, "duplicate extender managed resource name")
            managed.add(resource.name)
    binders = sum(1 for extender in extenders if extender.bind_verb)
    if binders > 1:
        shown = f"found {binders} extenders implementing bind"
        yield invalid("extenders", shown, "only one extender can implement bind")


def _extended_resource(path: str, name: str) -> Iterator[Problem]:
    errors = qualified_name_errors(name)
    yield from (invalid(path, name, rule) for rule in errors)
    if not errors and not is_extended_resource(name):
        yield invalid(path, name, "is an invalid extended resource name")
