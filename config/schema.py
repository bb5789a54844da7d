"""KubeSchedulerConfiguration v1 as written.

Field by field upstream's staging/src/k8s.io/kube-scheduler/config/v1/types.go and
component-base/config/v1alpha1/types.go of 1.34; defaults are in `config.defaults`. The prefix V1
marks types that have another form elsewhere, such as in `config.model` and `config.plugin_args`.
`never_omitted` and `refuses_null` are explained at `go_struct.GoStruct`: fields that Go prints even
if they are empty, and keys that a document may leave out, but not set to null.
"""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from roadstead.config.durations import Duration
from roadstead.config.go_struct import (
    Base64,
    Bool,
    Float32,
    GoDuration,
    GoStruct,
    Int32,
    Int64,
    Str,
)

Names = frozenset[str]
"""Names of fields, or keys, of a model."""


class V1Plugin(GoStruct):
    """A plugin by name; `weight` None or 0 means 1 (and is used at `score` only)."""

    never_omitted: ClassVar[Names] = frozenset({"name"})
    name: Str = ""
    weight: Int32 | None = None


class PluginSet(GoStruct):
    """Enabled and disabled plugins of one extension point; "*" disables all defaults."""

    enabled: list[V1Plugin] | None = None
    disabled: list[V1Plugin] | None = None


class PointSets(GoStruct):
    """The plugin sets of all extension points, without `multiPoint`."""

    pre_enqueue: PluginSet = PluginSet()
    queue_sort: PluginSet = PluginSet()
    pre_filter: PluginSet = PluginSet()
    filter: PluginSet = PluginSet()
    post_filter: PluginSet = PluginSet()
    pre_score: PluginSet = PluginSet()
    score: PluginSet = PluginSet()
    reserve: PluginSet = PluginSet()
    permit: PluginSet = PluginSet()
    pre_bind: PluginSet = PluginSet()
    bind: PluginSet = PluginSet()
    post_bind: PluginSet = PluginSet()

    def sets(self) -> dict[str, PluginSet]:
        """Return extension point (upstream's name, `multiPoint` included where it exists) → set."""
        fields = type(self).model_fields
        return {field.alias or name: getattr(self, name) for name, field in fields.items()}


class Plugins(PointSets):
    """The sets of all extension points, and `multiPoint`, which stands for all of them."""

    multi_point: PluginSet = PluginSet()


class PluginConfig(GoStruct):
    """Arguments of one plugin: for an in-tree plugin a model of `schema_args`, else as written."""

    never_omitted: ClassVar[Names] = frozenset({"name", "args"})
    name: Str = ""
    args: Any = None


class KubeSchedulerProfile(GoStruct):
    """One profile; pods choose it by `spec.schedulerName`."""

    scheduler_name: Str | None = None
    percentage_of_nodes_to_score: Int32 | None = None
    plugins: Plugins | None = None
    plugin_config: list[PluginConfig] | None = None


class ExtenderManagedResource(GoStruct):
    """An extended resource that an extender manages."""

    never_omitted: ClassVar[Names] = frozenset({"name"})
    name: Str = ""
    ignored_by_scheduler: Bool = False


class ExtenderTLSConfig(GoStruct):
    """TLS of an extender. The data fields are base64 of PEM and never shown."""

    insecure: Bool = False
    server_name: Str = ""
    cert_file: Str = ""
    key_file: Str = ""
    ca_file: Str = ""
    cert_data: Base64 = Field(default="", repr=False)
    key_data: Base64 = Field(default="", repr=False)
    ca_data: Base64 = Field(default="", repr=False)


class V1Extender(GoStruct):
    """An HTTP extender; an empty verb is not called."""

    never_omitted: ClassVar[Names] = frozenset({"url_prefix"})
    refuses_null: ClassVar[Names] = frozenset({"httpTimeout"})
    url_prefix: Str = ""
    filter_verb: Str = ""
    preempt_verb: Str = ""
    prioritize_verb: Str = ""
    weight: Int64 = 0
    bind_verb: Str = ""
    enable_https: Bool = Field(default=False, alias="enableHTTPS")
    tls_config: ExtenderTLSConfig | None = None
    http_timeout: GoDuration = Duration()
    node_cache_capable: Bool = False
    managed_resources: list[ExtenderManagedResource] | None = None
    ignorable: Bool = False


class LeaderElection(GoStruct):
    """Leader election: read and checked as upstream; Roadstead does not use it."""

    never_omitted: ClassVar[Names] = frozenset(
        {"lease_duration", "renew_deadline", "retry_period"}
        | {"leader_elect", "resource_lock", "resource_name", "resource_namespace"}
    )
    refuses_null: ClassVar[Names] = frozenset({"leaseDuration", "renewDeadline", "retryPeriod"})
    leader_elect: Bool | None = None
    lease_duration: GoDuration = Duration()
    renew_deadline: GoDuration = Duration()
    retry_period: GoDuration = Duration()
    resource_lock: Str = ""
    resource_name: Str = ""
    resource_namespace: Str = ""


class ClientConnection(GoStruct):
    """Connection to an API server."""

    never_omitted: ClassVar[Names] = frozenset(
        {"kubeconfig", "accept_content_types", "content_type", "qps", "burst"}
    )
    kubeconfig: Str = ""
    accept_content_types: Str = ""
    content_type: Str = ""
    qps: Float32 = 0.0
    burst: Int32 = 0


class CommonFields(GoStruct):
    """Fields of a document that v1 and the versions before it share."""

    api_version: Str = ""
    kind: Str = ""
    parallelism: Int32 | None = None
    leader_election: LeaderElection = LeaderElection()
    client_connection: ClientConnection = ClientConnection()
    enable_profiling: Bool | None = None
    enable_contention_profiling: Bool | None = None
    percentage_of_nodes_to_score: Int32 | None = None
    pod_initial_backoff_seconds: Int64 | None = None
    pod_max_backoff_seconds: Int64 | None = None


class KubeSchedulerConfiguration(CommonFields):
    """The whole document."""

    profiles: list[KubeSchedulerProfile] | None = None
    extenders: list[V1Extender] | None = None
    delay_cache_until_active: Bool = False
