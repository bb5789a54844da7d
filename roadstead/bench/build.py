"""Translation of a workload's ops into a script: each op becomes a step or an initial object.

An op is an operation of a test case in scheduler_perf's format, such as createPods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import singledispatchmethod

from roadstead.bench import script
from roadstead.bench.cluster_objects import ClusterObjects
from roadstead.bench.objects import (
    DEFAULT_NODE,
    DEFAULT_POD,
    bound_claim,
    bound_volume,
    fixed_name,
    name_prefix,
    node_class,
    pod_class,
    with_claim,
)
from roadstead.bench.reading import TestCase
from roadstead.bench.schema import (
    COUNT_MAX,
    AllocResourceClaims,
    BarrierOp,
    ChurnOp,
    CreateAny,
    CreateNamespacesOp,
    CreateNodesOp,
    CreatePodsOp,
    CreateResourceDriver,
    DeletePodsOp,
    NodeAllocatable,
    Scalar,
    SleepOp,
    StartCollecting,
    StopCollecting,
    WorkloadSpec,
)
from roadstead.bench.script import Script, Step, WaitMode
from roadstead.bench.series import ENDLESS, NodeSeries, PodSeries
from roadstead.bench.templates import Document, Template, read_text
from roadstead.bench.unroll import Params, PlainOp, unroll
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import Labels, PodFacts
from roadstead.facts.storage import CsiNodeFacts, NodeDriverFacts
from roadstead.protocol.errors import InputError, cut_short

CONFIG_MAX_BYTES = 1 << 20
NODES, PODS = "Node", "Pod"
STEADY_PODS_PER_S = 2000
"""Number of pods for each second of a steady state, which ends early if they run out."""

STEADY_MAX_S = COUNT_MAX // STEADY_PODS_PER_S
"""Longest steady state, in seconds: its pods are as many as one op may create."""


def build_script(case: TestCase, workload: WorkloadSpec) -> Script:
    """Build the script of a workload. Raises InputError for a wrong template or parameter."""
    params = Params(case, workload.name, dict(workload.params))
    builder = _Builder(case)
    for number, op in enumerate(unroll(case, params)):
        try:
            builder.add(op, number)
        except InputError as error:
            raise error.at(source=case.source, obj=case.obj) from None
    path = case.spec.scheduler_config_path
    config = case.folder / path if path else None
    return Script(
        f"{case.name}/{workload.name}",
        tuple(builder.steps),
        builder.cluster.facts(),
        config_text=read_text(config, CONFIG_MAX_BYTES) if config else "",
        config_source=str(config) if config else "",
        notes=tuple(builder.notes),
    )


@dataclass(slots=True)
class _Builder:
    """Collect what the ops of a workload become.

    number: that of the current op; it names the op's namespace, as upstream.
    """

    case: TestCase
    steps: list[Step] = field(default_factory=list)
    cluster: ClusterObjects = field(default_factory=ClusterObjects)
    notes: list[str] = field(default_factory=list)
    number: int = 0
    # (kind, prefix of names) → numbers that are in use.
    _used_numbers: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, op: PlainOp, number: int) -> None:
        self.number = number
        self._add(op)

    @singledispatchmethod
    def _add(self, op: object) -> None:
        raise AssertionError(f"no such op: {op}")

    @_add.register
    def _(self, op: CreateNodesOp) -> None:
        template = self._template(op.node_template_path, DEFAULT_NODE)
        documents = _documents(template, op.count, op.template_params)
        extra = op.node_allocatable_strategy or NodeAllocatable()
        labels = _labels_of(op)
        # As many classes as there are different objects or labels; the nodes have them in turn.
        class_count = max(len(documents), len(labels)) if documents else 0
        classes = tuple(
            node_class(
                documents[index % len(documents)],
                template.source,
                labels[index % len(labels)],
                extra.node_allocatable,
            )
            for index in range(class_count)
        )
        series = self._node_series(template, documents, op.count, classes)
        self.steps.append(script.AddNodes(series))
        if extra.csi_node_allocatable or extra.migrated_plugins:
            self.cluster.csi_nodes += _csi_nodes(series, extra)

    def _node_series(
        self,
        template: Template,
        documents: list[Document],
        count: int,
        classes: tuple[NodeFacts, ...],
    ) -> NodeSeries:
        names = _fixed_names(template, documents, count)
        prefix = name_prefix(documents[0], "node-") if documents else "node-"
        first = self._reserve_numbers(NODES, prefix, count)
        return NodeSeries(classes, count, prefix, first, names)

    def _reserve_numbers(self, kind: str, prefix: str, count: int) -> int:
        """Reserve `count` numbers of a name prefix, and return the first one."""
        first = self._used_numbers[kind, prefix]
        self._used_numbers[kind, prefix] += count
        return first

    @_add.register
    def _(self, op: CreateNamespacesOp) -> None:
        labels: dict[str, str] = {}
        if op.namespace_template_path:
            template = self.case.template(op.namespace_template_path)
            # Only the labels of this object are used.
            example = ClusterObjects()
            example.add(template.document(), template.source, namespace="", number=0)
            labels = next(iter(example.namespaces.values()))
        for index in range(op.count):
            self.cluster.add_namespace(f"{op.prefix}-{index}", dict(labels))

    @_add.register
    def _(self, op: CreatePodsOp) -> None:
        if op.steady_state and not (op.duration and op.collect_metrics):
            problem = "needs a duration and collectMetrics"
            raise InputError(problem, field="steadyState", value="true")
        if op.collect_metrics and op.skip_wait_to_completion:
            problem = "cannot be true where collectMetrics is"
            raise InputError(problem, field="skipWaitToCompletion")
        path = op.pod_template_path or self.case.spec.default_pod_template_path
        template = self._template(path, DEFAULT_POD)
        count = op.count
        if op.steady_state:
            if float(op.duration) > STEADY_MAX_S:
                rule = f"must not exceed {STEADY_MAX_S} s for a steady state"
                raise InputError(rule, field="duration", value=f"{op.duration}s")
            count = max(count, round(STEADY_PODS_PER_S * float(op.duration)))
        series = self._pod_series(template, count, op.namespace, op.template_params)
        series = self.cluster.devices.with_claims(self._with_volume_claims(series, op))
        if op.steady_state:
            self.steps.append(script.SteadyPods(series, op.count, float(op.duration)))
            return
        wait = WaitMode.NOTHING if op.skip_wait_to_completion else WaitMode.BOUND
        self.steps.append(script.SubmitPods(series, wait, measured=op.collect_metrics))

    def _pod_series(
        self,
        template: Template,
        count: int,
        namespace: str | None,
        values: Mapping[str, Scalar],
    ) -> PodSeries:
        namespace = namespace or f"namespace-{self.number}"
        self.cluster.add_namespace(namespace)
        documents = _documents(template, count, values)
        classes = tuple(
            pod_class(each, template.source, namespace, self.cluster.priorities)
            for each in documents
        )
        names = _fixed_names(template, documents, count)
        prefix = name_prefix(documents[0], "pod-") if documents else "pod-"
        first = self._reserve_numbers(f"{PODS} in {namespace}", prefix, count)
        return PodSeries(count, namespace, classes, prefix, first, names)

    def _with_volume_claims(self, series: PodSeries, op: CreatePodsOp) -> PodSeries:
        """The series with one volume claim for each pod, each bound to a volume of its own."""
        paths = op.persistent_volume_template_path, op.persistent_volume_claim_template_path
        if paths == (None, None):
            return series
        if None in paths:
            rule = "must be given together with persistentVolumeClaimTemplatePath"
            raise InputError(rule, field="persistentVolumeTemplatePath")
        templates = (self.case.template(path) for path in paths if path)
        volume, claim = ((each.document(), each.source) for each in templates)
        first = self._reserve_numbers("PersistentVolume", "vol-", series.count)
        classes: list[PodFacts] = []
        for index in range(series.count):
            name, number = f"pvc-{first + index}", first + index
            found = bound_volume(*volume, number, series.namespace, name)
            self.cluster.volumes.append(found)
            self.cluster.claims.append(bound_claim(*claim, name, series.namespace, found.name))
            classes.append(with_claim(series.classes[index % len(series.classes)], name))
        fields = (series.namespace, tuple(classes), series.prefix, series.first, series.names)
        return PodSeries(series.count, *fields)

    @_add.register
    def _(self, op: DeletePodsOp) -> None:
        labels = _sorted(op.label_selector)
        waits = not op.skip_wait_to_completion
        per_s = op.delete_pods_per_second
        self.steps.append(script.RemovePods(op.namespace, labels, per_s, waits))

    @_add.register
    def _(self, op: ChurnOp) -> None:
        if op.mode == "recreate" and op.number == 0:
            raise InputError("must not be 0 where mode is recreate", field="number")
        found = [self._churn_series(self.case.template(path), op) for path in op.template_paths]
        interval_s = (op.interval_milliseconds or 500) / 1000
        series = tuple(each for each in found if each is not None)
        recreates = op.mode == "recreate"
        self.steps.append(script.ChurnObjects(series, interval_s, op.number, recreates=recreates))

    def _churn_series(self, template: Template, op: ChurnOp) -> NodeSeries | PodSeries | None:
        document = template.document()
        if document["kind"] == PODS:
            # A series without pods adds the namespace to the cluster, and names it.
            series = self._pod_series(template, 0, op.namespace, {})
            prefix = name_prefix(document, "churn-")
            facts = pod_class(document, template.source, series.namespace, self.cluster.priorities)
            return PodSeries(ENDLESS, series.namespace, (facts,), f"{prefix}churned-")
        if document["kind"] == NODES:
            facts_of_node = node_class(document, template.source, {}, {})
            prefix = name_prefix(document, "churn-")
            return NodeSeries((facts_of_node,), ENDLESS, f"{prefix}churned-")
        namespace = op.namespace or f"namespace-{self.number}"
        self.cluster.add(document, template.source, namespace, self.number)
        note = (
            f"{document['kind']} of a churn exists from the start; it is not created and deleted."
        )
        self.notes.append(note)
        return None

    @_add.register
    def _(self, op: CreateAny) -> None:
        template = self.case.template(op.template_path)
        for index in range(op.count or 0):
            values = {**op.template_params, "Index": index, "Count": op.count}
            document = template.document(values)
            if document["kind"] in (NODES, PODS):
                self._add_one(str(document["kind"]), document, template, op)
            else:
                number = self._reserve_numbers("object", "", 1)
                self.cluster.add(document, template.source, op.namespace, number)

    @_add.register
    def _(self, op: CreateResourceDriver) -> None:
        names = [each.name for each in self._nodes() if fnmatchcase(each.name, op.nodes)]
        self.cluster.devices.add_driver(op.driver_name, names, op.max_claims_per_node)

    @_add.register
    def _(self, op: AllocResourceClaims) -> None:
        self.cluster.devices.allocate(op.namespace, self._nodes())

    def _nodes(self) -> list[NodeFacts]:
        """Return all nodes so far."""
        added = (step.series for step in self.steps if isinstance(step, script.AddNodes))
        return [node for series in added for node in series.part(0, series.count)]

    def _add_one(self, kind: str, document: Document, template: Template, op: CreateAny) -> None:
        names = (fixed_name(document),) if fixed_name(document) else ()
        prefix = name_prefix(document, f"{kind.lower()}-")
        if kind == NODES:
            classes = (node_class(document, template.source, {}, {}),)
            first = self._reserve_numbers(NODES, prefix, 1)
            self.steps.append(script.AddNodes(NodeSeries(classes, 1, prefix, first, names)))
            return
        namespace = op.namespace or f"namespace-{self.number}"
        self.cluster.add_namespace(namespace)
        facts = pod_class(document, template.source, namespace, self.cluster.priorities)
        first = self._reserve_numbers(f"{PODS} in {namespace}", prefix, 1)
        series = PodSeries(1, namespace, (facts,), prefix, first, names)
        self.steps.append(script.SubmitPods(series, WaitMode.NOTHING))

    @_add.register
    def _(self, op: BarrierOp) -> None:
        labels = _sorted(op.label_selector)
        attempted = op.stage_requirement == "Attempted"
        self.steps.append(script.AwaitPods(op.namespaces, labels, attempted=attempted))

    @_add.register
    def _(self, op: SleepOp) -> None:
        self.steps.append(script.SleepStep(float(op.duration)))

    @_add.register
    def _(self, op: StartCollecting) -> None:
        labels = _sorted(op.label_selector)
        self.steps.append(script.BeginMeasuring(op.name, op.namespaces, labels))

    @_add.register
    def _(self, op: StopCollecting) -> None:
        self.steps.append(script.EndMeasuring())

    def _template(self, path: str | None, default: Template) -> Template:
        return self.case.template(path) if path else default


def _sorted(labels: Mapping[str, str]) -> Labels:
    return tuple(sorted(labels.items()))


def _documents(template: Template, count: int, values: Mapping[str, Scalar]) -> list[Document]:
    """The objects of a template: one if all objects are equal, otherwise one per object."""
    if not template.varies:
        return [template.document()]
    return [template.document({**values, "Index": index, "Count": count}) for index in range(count)]


def _fixed_names(template: Template, documents: list[Document], count: int) -> tuple[str, ...]:
    """Names that the template sets; () if names are generated."""
    names = tuple(map(fixed_name, documents))
    if not names or not any(names):
        return ()
    if len(names) < count or len(set(names)) != len(names):
        problem = "is the name of several objects (want generateName, or {{.Index}} in it)"
        value = cut_short(names[0])
        raise InputError(problem, source=template.source, field="metadata.name", value=value)
    return names


def _labels_of(op: CreateNodesOp) -> list[dict[str, str]]:
    """Additional labels of the nodes; node i has entry i modulo the length."""
    if op.label_node_prepare_strategy is not None:
        strategy = op.label_node_prepare_strategy
        return [{strategy.label_key: value} for value in strategy.label_values]
    if op.unique_node_label_strategy is not None:
        key = op.unique_node_label_strategy.label_key
        return [{key: f"value-{index}"} for index in range(op.count)] or [{}]
    return [{}]


def _csi_nodes(series: NodeSeries, extra: NodeAllocatable) -> list[CsiNodeFacts]:
    drivers = tuple(
        NodeDriverFacts(name, limit.get("count"))
        for name, limit in sorted(extra.csi_node_allocatable.items())
    )
    return [
        CsiNodeFacts(series.name(index), drivers, tuple(sorted(extra.migrated_plugins)))
        for index in range(series.count)
    ]
