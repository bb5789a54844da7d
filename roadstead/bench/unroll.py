"""Expansion of a test case with one workload: parameters filled in, one op per pod set.

Upstream: scheduler_perf unrollWorkloadTemplate, patchParams.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from roadstead.bench.reading import TestCase
from roadstead.bench.schema import (
    COUNT_MAX,
    AllocResourceClaims,
    BarrierOp,
    ChurnOp,
    CreateAny,
    CreateNamespacesOp,
    CreateNodesOp,
    CreatePodSetsOp,
    CreatePodsOp,
    CreateResourceDriver,
    DeletePodsOp,
    Op,
    Scalar,
    SleepOp,
    StartCollecting,
    StopCollecting,
)
from roadstead.config.durations import parse_duration
from roadstead.protocol.errors import InputError, cut_short

PlainOp = (
    CreateNodesOp
    | CreateNamespacesOp
    | CreatePodsOp
    | DeletePodsOp
    | ChurnOp
    | BarrierOp
    | SleepOp
    | CreateAny
    | CreateResourceDriver
    | AllocResourceClaims
    | StartCollecting
    | StopCollecting
)


@dataclass(frozen=True, slots=True)
class Params:
    """The parameters of a workload, and the names of those that ops have used so far."""

    case: TestCase
    workload: str
    values: dict[str, Scalar]
    used: set[str] = field(default_factory=set)

    def value(self, param: str) -> Scalar:
        """The value of `$name`. Raises InputError if there is none."""
        name = param.removeprefix("$")
        if name not in self.values:
            raise self.error("is not among the workload's params", name)
        self.used.add(name)
        return self.values[name]

    def count(self, count: int, param: str) -> int:
        """The value of the parameter if one is named, otherwise `count`."""
        return self._integer(param) if param else count

    def product(self, count: int, multiplier_param: str) -> int:
        """`count` times the value of a parameter. Raises InputError above COUNT_MAX."""
        total = count * self._integer(multiplier_param)
        if total > COUNT_MAX:
            rule = f"times a count of {count} must not exceed {COUNT_MAX}"
            name = multiplier_param.removeprefix("$")
            raise self.error(rule, name, cut_short(self.value(multiplier_param)))
        return total

    def _integer(self, param: str) -> int:
        found = self.value(param)
        is_number = isinstance(found, (int, float)) and not isinstance(found, bool)
        if not is_number or int(found) != found or not 0 <= int(found) <= COUNT_MAX:
            rule = f"must be a whole number from 0 to {COUNT_MAX}"
            raise self.error(rule, param.removeprefix("$"), cut_short(found))
        return int(found)

    def filled(self, template_params: dict[str, Scalar]) -> dict[str, Scalar]:
        """Template parameters, with the values of the workload's parameters filled in."""
        return {
            name: self.value(each) if isinstance(each, str) and each.startswith("$") else each
            for name, each in template_params.items()
        }

    def seconds(self, text: str, param: str) -> float:
        """A duration in Go's notation, in seconds; a named parameter overrides `text`."""
        found = str(self.value(param)) if param else text
        try:
            seconds = parse_duration(found).seconds
        except ValueError:
            seconds = -1.0
        if seconds < 0:
            problem = 'is not a duration (want e.g. "500ms", "1m30s")'
            raise self.error(problem, param.removeprefix("$") or "duration", cut_short(found))
        return seconds

    def check_all_used(self) -> None:
        """Raise InputError for a parameter that no op uses: most likely a typo."""
        unused = sorted(set(self.values) - self.used)
        if unused:
            raise self.error("is used by no op", unused[0])

    def error(self, problem: str, name: str, value: str = "") -> InputError:
        obj = f"{self.case.obj}: workload {cut_short(self.workload)}"
        return InputError(
            problem, source=self.case.source, obj=obj, field=f"params.{name}", value=value
        )


def unroll(case: TestCase, params: Params) -> list[PlainOp]:
    """Return the ops of a workload: parameters filled in, one op per pod set. Raises InputError."""
    ops: list[PlainOp] = []
    for op in case.spec.workload_template:
        if isinstance(op, CreatePodSetsOp):
            pods = _with_params(op.create_pods_op, params)
            for index in range(params.count(op.count, op.count_param)):
                name = f"{op.namespace_prefix}-{index}"
                ops.append(pods.model_copy(update={"namespace": name}))
        else:
            ops.append(_with_params(op, params))
    params.check_all_used()
    return ops


def _with_params(op: Op, params: Params) -> PlainOp:
    changes: dict[str, object] = {}
    if isinstance(op, (CreateNodesOp, CreateNamespacesOp, CreatePodsOp)):
        changes["count"] = params.count(op.count, op.count_param)
    if isinstance(op, CreateAny):
        changes["count"] = params.count(1 if op.count is None else op.count, op.count_param)
    if isinstance(op, (CreateNodesOp, CreatePodsOp, CreateAny)) and op.template_params:
        changes["template_params"] = params.filled(op.template_params)
    # As upstream, the multiplier scales the count that is set above.
    if isinstance(op, CreatePodsOp) and op.count_multiplier_param:
        changes["count"] = params.product(
            params.count(op.count, op.count_param), op.count_multiplier_param
        )
    if isinstance(op, CreatePodsOp) and op.steady_state_param:
        changes["steady_state"] = params.value(op.steady_state_param) is True
    if isinstance(op, CreatePodsOp) and (op.duration or op.duration_param):
        changes["duration"] = str(params.seconds(op.duration, op.duration_param))
    if isinstance(op, CreateResourceDriver):
        claims_max = params.count(op.max_claims_per_node, op.max_claims_per_node_param)
        changes["max_claims_per_node"] = claims_max
    if isinstance(op, SleepOp):
        changes["duration"] = str(params.seconds(op.duration, op.duration_param))
    assert not isinstance(op, CreatePodSetsOp)
    return op.model_copy(update=changes) if changes else op
