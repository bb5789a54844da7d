"""Building of the profiles: the stage `build`, where kube-scheduler constructs its frameworks.

Upstream: pkg/scheduler/scheduler.go (New, buildExtenders), pkg/scheduler/extender.go
(NewHTTPExtender), pkg/scheduler/profile/profile.go, framework/runtime/framework.go (NewFramework).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from roadstead.config.convert import to_extender, to_plugin_args, to_scheduler_config
from roadstead.config.durations import parse_duration
from roadstead.config.errors import ConfigError, Problem
from roadstead.config.intree import EXTENSION_POINTS, IN_TREE_POINTS, OPTIONAL_POINTS
from roadstead.config.merge import ExpansionError, enabled_names, expand, score_weights
from roadstead.config.model import PluginRef, ProfileConfig, SchedulerConfig
from roadstead.config.plugin_args import NodeLabelArgs, PluginArgs
from roadstead.config.schema import (
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    PluginConfig,
    Plugins,
    V1Extender,
)
from roadstead.config.schema_args import V1NodeResourcesFitArgs
from roadstead.config.validation_fit import validate_fit_args

_EXTENDER_TIMEOUT: Final = parse_duration("5s")
_FIT: Final = "NodeResourcesFit"
_NODE_LABEL: Final = "NodeLabel"
_COSCHEDULING: Final = "Coscheduling"

# Where kube-scheduler panics on a nil pointer, Roadstead refuses the configuration with a reason.
_PANIC: Final = "PANIC: runtime error: invalid memory address or nil pointer dereference"


class _BuildError(Exception):
    """A refused field, with upstream's text. panics: upstream panics, and the text is our own."""

    def __init__(self, field: str, text: str, *, panics: bool = False) -> None:
        self.field, self.text, self.panics = field, text, panics
        super().__init__(text)


def points_table(
    extra_plugins: Mapping[str, Iterable[str]], *, as_upstream: bool = False
) -> Mapping[str, frozenset[str]]:
    """Return in-tree and extra plugins with their extension points.

    `as_upstream` leaves out the plugins that kube-scheduler does not have. Raises ValueError if an
    extra plugin has an in-tree name or an unknown extension point.
    """
    table = dict(IN_TREE_POINTS if as_upstream else {**IN_TREE_POINTS, **OPTIONAL_POINTS})
    for name, points in extra_plugins.items():
        implemented = frozenset(points)
        unknown = implemented - set(EXTENSION_POINTS)
        if name in table:
            raise ValueError(f"plugin {name!r} is in-tree; an extra plugin needs its own name")
        if unknown:
            raise ValueError(f"plugin {name!r}: no such extension point: {sorted(unknown)}")
        table[name] = implemented
    return MappingProxyType(table)


def apply_extenders(
    config: KubeSchedulerConfiguration, *, source: str
) -> KubeSchedulerConfiguration:
    """Set the extenders' timeouts, and the resources that NodeResourcesFit ignores for extenders.

    These are the extenders' managed resources with `ignored_by_scheduler`.
    Raises ConfigError(stage="build"). The result is what `--write-config-to` prints.
    """
    if not config.extenders:
        return config
    try:
        extenders = [_extender(extender, i) for i, extender in enumerate(config.extenders)]
        ignored = [
            resource.name
            for extender in extenders
            for resource in extender.managed_resources or ()
            if resource.ignored_by_scheduler
        ]
        profiles = config.profiles or []
        if ignored:
            profiles = [_ignoring(ignored, profile, i) for i, profile in enumerate(profiles)]
    except _BuildError as error:
        text = f"couldn't build extenders: {error.text}"
        raise ConfigError("build", [Problem(error.field, text)], source=source) from None
    return config.model_copy(update={"extenders": extenders, "profiles": profiles})


def _extender(extender: V1Extender, index: int) -> V1Extender:
    tls = extender.tls_config
    has_ca = tls is not None and bool(tls.ca_file or tls.ca_data)
    if tls is not None and has_ca and tls.insecure:
        problem = "specifying a root certificates file with the insecure flag is not allowed"
        raise _BuildError(f"extenders[{index}].tlsConfig", problem)
    timeout = extender.http_timeout if extender.http_timeout.ns else _EXTENDER_TIMEOUT
    return extender.model_copy(update={"http_timeout": timeout})


def _ignoring(names: list[str], profile: KubeSchedulerProfile, index: int) -> KubeSchedulerProfile:
    """Return a profile whose NodeResourcesFit ignores these resources."""
    configs = list(profile.plugin_config or ())
    for i, config in enumerate(configs):
        if config.name == _FIT:
            # The names replace the user's list: upstream lets extenders take precedence.
            args = config.args.model_copy(update={"ignored_resources": names})
            configs[i] = config.model_copy(update={"args": args})
            return profile.model_copy(update={"plugin_config": configs})
    path = f"profiles[{index}].pluginConfig"
    raise _BuildError(path, "can't find NodeResourcesFitArgs in plugin config")


def build(
    config: KubeSchedulerConfiguration,
    points_of: Mapping[str, frozenset[str]],
    *,
    source: str,
) -> SchedulerConfig:
    """Build the profiles, with multiPoint expanded; raises ConfigError(stage="build")."""
    profiles: list[ProfileConfig] = []
    for i, profile in enumerate(config.profiles or ()):
        path = f"profiles[{i}]"
        try:
            profiles.append(_profile(profile, path, points_of))
        except _BuildError as error:
            context = f"creating profile for scheduler name {profile.scheduler_name}: "
            raise _refused(error, context, source) from None
        different = _different_queue_sort(profiles)
        if different:
            raise _refused(_BuildError(f"{path}.plugins.queueSort", different), "", source)
    extenders = tuple(to_extender(extender) for extender in config.extenders or ())
    return to_scheduler_config(config, tuple(profiles), extenders)


def _refused(error: _BuildError, context: str, source: str) -> ConfigError:
    text = f"initializing profiles: {context}{error.text}"
    problem = Problem(error.field, text, upstream=_PANIC if error.panics else "")
    return ConfigError("build", [problem], source=source)


def _profile(
    profile: KubeSchedulerProfile, path: str, points_of: Mapping[str, frozenset[str]]
) -> ProfileConfig:
    assert profile.plugins is not None, "defaults come before building"
    assert profile.scheduler_name is not None
    enabled = {name for name in enabled_names(profile.plugins) if name in points_of}
    args = _args(profile.plugin_config or [], enabled, path)
    try:
        order = expand(profile.plugins, points_of)
    except ExpansionError as error:
        raise _BuildError(f"{path}.plugins.{error.point}", str(error)) from None
    _check_queue_sort_and_bind(order, profile.scheduler_name, path)
    _check_multi_point(profile.plugins, points_of, path)
    _check_node_label(order, args.get(_NODE_LABEL), path)
    _check_coscheduling(order, path)
    weights = score_weights(profile.plugins)
    plugins = {
        point: tuple(PluginRef(n, weights[n] if point == "score" else 1) for n in names)
        for point, names in order.items()
    }
    return ProfileConfig(
        profile.scheduler_name,
        profile.percentage_of_nodes_to_score,
        MappingProxyType(plugins),
        MappingProxyType(args),
    )


def _check_queue_sort_and_bind(
    order: Mapping[str, tuple[str, ...]], scheduler_name: str, path: str
) -> None:
    profile = f'profile with scheduler name "{scheduler_name}"'
    count = len(order["queueSort"])
    if count != 1:
        text = f"only one queue sort plugin required for {profile}, but got {count}"
        raise _BuildError(f"{path}.plugins.queueSort", text)
    if not order["bind"]:
        text = f"at least one bind plugin is needed for {profile}"
        raise _BuildError(f"{path}.plugins.bind", text)


def _check_multi_point(
    plugins: Plugins, points_of: Mapping[str, frozenset[str]], path: str
) -> None:
    # Expansion refuses these already, unless "*" is disabled at every extension point.
    for i, plugin in enumerate(plugins.multi_point.enabled or ()):
        if plugin.name not in points_of:
            where = f"{path}.plugins.multiPoint.enabled[{i}]"
            raise _BuildError(where, f'plugin "{plugin.name}" does not exist', panics=True)


def _check_node_label(
    order: Mapping[str, tuple[str, ...]], args: PluginArgs | None, path: str
) -> None:
    if _NODE_LABEL not in order["score"]:
        return
    has_preference = isinstance(args, NodeLabelArgs) and (
        args.present_labels_preference or args.absent_labels_preference
    )
    if not has_preference:
        where = f"{path}.pluginConfig"
        text = "needs presentLabelsPreference or absentLabelsPreference where it scores"
        raise _BuildError(where, f'initializing plugin "{_NODE_LABEL}": {text}', panics=True)


def _check_coscheduling(order: Mapping[str, tuple[str, ...]], path: str) -> None:
    # The plugin's Permit counts the pods that its Reserve recorded.
    if _COSCHEDULING in order["permit"] and _COSCHEDULING not in order["reserve"]:
        text = f'initializing plugin "{_COSCHEDULING}": needs reserve where it is enabled at permit'
        raise _BuildError(f"{path}.plugins.permit", text)


def _args(configs: list[PluginConfig], enabled: set[str], path: str) -> dict[str, PluginArgs]:
    """Return plugin → arguments. enabled: names of the enabled plugins that exist."""
    typed: dict[str, PluginArgs] = {}
    for i, config in enumerate(configs):
        # As upstream, arguments of an in-tree plugin that is not enabled have no effect.
        if config.args is None or (config.name in IN_TREE_POINTS and config.name not in enabled):
            continue
        if isinstance(config.args, V1NodeResourcesFitArgs):
            _check_fit(config.args, f"{path}.pluginConfig[{i}].args")
        typed[config.name] = to_plugin_args(config.args)
    return typed


def _check_fit(args: V1NodeResourcesFitArgs, path: str) -> None:
    problems = list(validate_fit_args(args))
    if problems:
        texts = list(dict.fromkeys(problem.upstream_text for problem in problems))
        text = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
        raise _BuildError(f"{path}.{problems[0].field}", f'initializing plugin "{_FIT}": {text}')
    strategy = args.scoring_strategy
    assert strategy is not None, "defaults come before building"
    if strategy.type == "RequestedToCapacityRatio" and not strategy.requested_to_capacity_ratio:
        where = f"{path}.scoringStrategy.requestedToCapacityRatio"
        text = "must be specified when type is RequestedToCapacityRatio"
        raise _BuildError(where, f'initializing plugin "{_FIT}": {text}', panics=True)


def _different_queue_sort(profiles: list[ProfileConfig]) -> str:
    """Return why the last profile cannot share a queue with the first; empty if it can."""
    first, last = profiles[0], profiles[-1]
    # `_check_queue_sort_and_bind` has found exactly one plugin in each.
    (first_plugin,), (last_plugin,) = first.at("queueSort"), last.at("queueSort")
    if first_plugin.name != last_plugin.name:
        names = f'"{last_plugin.name}", first: "{first_plugin.name}"'
        return f'different queue sort plugins for profile "{last.scheduler_name}": {names}'
    if first.args.get(first_plugin.name) != last.args.get(last_plugin.name):
        return f'different queue sort plugin args for profile "{last.scheduler_name}"'
    return ""
