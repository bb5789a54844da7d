"""KubeSchedulerConfiguration v1alpha1, and v1beta2 and v1beta3 where they differ from v1.

The models of the three have the prefixes Beta2, Beta3 and Alpha.
Upstream: staging/src/k8s.io/kube-scheduler/config/{v1alpha1,v1beta2,v1beta3}/types.go, in the
last release that had each.
"""

from __future__ import annotations

from typing import Any

from roadstead.config.go_struct import Bool, GoStruct, Int32, Int64, Str
from roadstead.config.schema import (
    ClientConnection,
    CommonFields,
    LeaderElection,
    PluginConfig,
    Plugins,
    PointSets,
    V1Extender,
)
from roadstead.config.schema_args import Args, V1ResourceSpec, V1UtilizationShapePoint


class Beta2Profile(GoStruct):
    """A profile, without v1's percentageOfNodesToScore; its `PointSets` have no multiPoint."""

    scheduler_name: Str | None = None
    plugins: PointSets | None = None
    plugin_config: list[PluginConfig] | None = None


class Beta3Profile(GoStruct):
    """A profile, without v1's percentageOfNodesToScore."""

    scheduler_name: Str | None = None
    plugins: Plugins | None = None
    plugin_config: list[PluginConfig] | None = None


class Beta2Configuration(CommonFields):
    """v1beta2."""

    extenders: list[V1Extender] | None = None
    healthz_bind_address: Str | None = None
    metrics_bind_address: Str | None = None
    profiles: list[Beta2Profile] | None = None


class Beta3Configuration(CommonFields):
    """v1beta3."""

    extenders: list[V1Extender] | None = None
    profiles: list[Beta3Profile] | None = None


class ResourceScorerArgs(Args):
    """Arguments of NodeResourcesLeastAllocated and NodeResourcesMostAllocated."""

    resources: list[V1ResourceSpec] | None = None


class CapacityRatioArgs(Args):
    """Arguments of RequestedToCapacityRatio."""

    shape: list[V1UtilizationShapePoint] | None = None
    resources: list[V1ResourceSpec] | None = None


class AlgorithmSource(GoStruct):
    """Source of v1alpha1's predicates and priorities."""

    provider: Str | None = None
    policy: dict[str, Any] | None = None


class AlphaLeaderElection(LeaderElection):
    """Leader election as in v1, with older names of resourceName and resourceNamespace, too."""

    lock_object_name: Str = ""
    lock_object_namespace: Str = ""


class AlphaConfiguration(GoStruct):
    """v1alpha1; its `plugins` and `pluginConfig` are refused as unknown fields."""

    api_version: Str = ""
    kind: Str = ""
    scheduler_name: Str | None = None
    algorithm_source: AlgorithmSource = AlgorithmSource()
    hard_pod_affinity_symmetric_weight: Int32 | None = None
    leader_election: AlphaLeaderElection = AlphaLeaderElection()
    client_connection: ClientConnection = ClientConnection()
    healthz_bind_address: Str | None = None
    metrics_bind_address: Str | None = None
    enable_profiling: Bool | None = None
    enable_contention_profiling: Bool | None = None
    disable_preemption: Bool | None = None
    percentage_of_nodes_to_score: Int32 | None = None
    bind_timeout_seconds: Int64 | None = None
    pod_initial_backoff_seconds: Int64 | None = None
    pod_max_backoff_seconds: Int64 | None = None
