"""The API server's checks of what a device shares or waits for: counters, capacities, conditions.

Upstream: validateCounterSet, validateRequestPolicy and validateDeviceBindingParameters in
pkg/apis/resource/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from roadstead.manifests.field_problem import FieldProblem, problem_at
from roadstead.protocol.names import dns_label_errors, qualified_name_errors
from roadstead.protocol.objects.devices import (
    CapacityRange,
    Counter,
    CounterSet,
    Device,
    DeviceCapacityValue,
)
from roadstead.protocol.quantity import Quantity


def counter_set_problems(counter_set: CounterSet) -> Iterator[FieldProblem]:
    """Yield the problems of a counter set of a slice."""
    if rules := dns_label_errors(counter_set.name):
        yield problem_at(("name",), counter_set.name, *rules)
    yield from counter_problems(counter_set.counters)


def counter_problems(counters: dict[str, Counter]) -> Iterator[FieldProblem]:
    """Yield the problems of the names of counters, of which there must be some."""
    if not counters:
        yield problem_at(("counters",), "", "is required")
    for name in counters:
        if rules := dns_label_errors(name):
            yield problem_at(("counters",), name, *rules)


def capacity_problems(capacity: DeviceCapacityValue, *, is_shared: bool) -> Iterator[FieldProblem]:
    """Yield the problems of a capacity's policy. is_shared: the device allows several claims."""
    policy, path = capacity.request_policy, ("requestPolicy",)
    if policy is None:
        return
    # In place of a value that is a map, these errors have a word.
    if not is_shared:
        yield problem_at(path, "given", "allowMultipleAllocations must be true")
    elif policy.valid_values and policy.valid_range is not None:
        yield problem_at(path, "both", "only one of `validValues`, `validRange` is allowed")
    elif policy.valid_values or policy.valid_range is not None:
        if policy.default is None:
            name = "validValues" if policy.valid_values else "validRange"
            yield problem_at((*path, "default"), "", f"is required with `{name}`")
        elif policy.valid_range is not None:
            for each in _range_problems(policy.default, capacity.value, policy.valid_range):
                yield each.below(*path, "validRange")
        else:
            for each in _values_problems(policy.default, capacity.value, policy.valid_values):
                yield each.below(*path, "validValues")


def _values_problems(
    default: Quantity, capacity: Quantity, values: Sequence[Quantity]
) -> Iterator[FieldProblem]:
    for index, (value, following) in enumerate(pairwise(values)):
        if value.cmp(following) >= 0:
            rule = "values must be unique, in ascending order"
            yield problem_at((index + 1,), following, rule)
    for index, each in enumerate(values):
        if each.cmp(capacity) > 0:
            yield problem_at((index,), each, f"must be no more than the capacity of {capacity}")
    if all(each.cmp(default) for each in values):
        yield problem_at((), default, "the default must be one of the values")


def _range_problems(
    default: Quantity, capacity: Quantity, allowed: CapacityRange
) -> Iterator[FieldProblem]:
    least, most, step = allowed.min, allowed.max, allowed.step
    if least is None:
        yield problem_at(("min",), "", "is required")
        return
    if default.cmp(least) < 0:
        yield problem_at(("min",), least, f"must be no more than the default of {default}")
    for name, bound in (("min", least), ("max", most)):
        if bound is not None and bound.cmp(capacity) > 0:
            yield problem_at((name,), bound, f"must be no more than the capacity of {capacity}")
    if most is not None and least.cmp(most) > 0:
        yield problem_at(("max",), most, f"must be no less than the minimum of {least}")
    if most is not None and default.cmp(most) > 0:
        yield problem_at(("max",), most, f"must be no less than the default of {default}")
    if step is not None:
        yield from _step_problems(step, least, capacity, (default, most))


def _step_problems(
    step: Quantity, least: Quantity, capacity: Quantity, amounts: Iterable[Quantity | None]
) -> Iterator[FieldProblem]:
    """Yield the problems of a step. amounts: those that must be whole steps from the least one."""
    # The API server divides by the step in whole units.
    if step.value() <= 0:
        yield problem_at(("step",), step, "must be greater than zero")
        return
    if least.add(step).cmp(capacity) > 0:
        rule = f"one step from the minimum must be no more than the capacity of {capacity}"
        yield problem_at(("step",), step, rule)
    for each in amounts:
        if each is not None and (each.value() - least.value()) % step.value():
            yield problem_at(("step",), step, f"{each} must be a number of steps from {least}")


def condition_problems(device: Device) -> Iterator[FieldProblem]:
    """Yield the problems of a device's binding conditions and binding failure conditions."""
    conditions = {
        "bindingConditions": device.binding_conditions,
        "bindingFailureConditions": device.binding_failure_conditions,
    }
    earlier: set[str] = set()
    for field, names in conditions.items():
        for index, name in enumerate(names):
            if rules := qualified_name_errors(name):
                yield problem_at((field, index), name, *rules)
            if name in earlier:
                yield problem_at((field, index), name, "must be unique in both lists")
            earlier.add(name)
    missing = [field for field, names in conditions.items() if not names]
    if len(missing) == 1:
        (other,) = conditions.keys() - missing
        yield problem_at((missing[0],), "", f"is required with `{other}`")
