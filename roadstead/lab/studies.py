"""Studies: functions that a sweep can run, with their parameters, bounds and metrics.

A study is a function of parameters and a seed. The studies of this module are of models, which
`roadstead stress --engine model` runs; `omega`, `parsync` and `policies` explain the parameters.
The study of the product's own actors is `product_study` in `roadstead/cli/stress_product.py`, its
runs are in `roadstead/api/product_runs.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Final, TypeAlias, cast

from roadstead.lab import omega, parsync, policies
from roadstead.lab.cell_types import CELLS
from roadstead.lab.placement import PLACEMENTS
from roadstead.protocol.errors import InputError, cut_short
from roadstead.sweeps.functions import RunTask
from roadstead.sweeps.tasks import Plain

Value: TypeAlias = bool | int | float | str
Values: TypeAlias = Mapping[str, Value]
Metrics: TypeAlias = Mapping[str, float]
Run: TypeAlias = Callable[[Values, int], Metrics]
"""(values of the parameters, seed) → metrics."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a study: its default, and its choices or bounds.

    text: a singular noun for titles of plots, followed by a unit or a remark in brackets. low,
    high: not used with choices.
    """

    name: str
    default: Value
    text: str
    low: float = 0.0
    high: float = 0.0
    choices: tuple[str, ...] = ()

    @property
    def rule(self) -> str:
        """The permitted values, in words."""
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        kind = "a whole number" if isinstance(self.default, int) else "a number"
        return f"{kind} from {self.low:,.10g} to {self.high:,.10g}"

    def parse(self, text: object, source: str) -> Value:
        """Convert text or YAML to a value. Raises InputError if it is not permitted."""
        value = self._converted(text)
        if value is None:
            raise InputError(
                f"must be {self.rule}", source=source, field=self.name, value=cut_short(str(text))
            )
        return value

    def _converted(self, text: object) -> Value | None:
        if self.choices:
            return str(text) if str(text) in self.choices else None
        if isinstance(text, bool):
            return None
        try:
            number = float(str(text))
        except ValueError:
            return None
        if not self.low <= number <= self.high:
            return None
        if isinstance(self.default, int):
            return int(number) if number.is_integer() else None
        return number


@dataclass(frozen=True, slots=True)
class Study:
    """A study: name, description, parameters, and the function that does one run.

    run: None for the product, whose runs need more than parameters. metrics: those to plot.
    is_possible: whether a combination of values can be run.
    """

    name: str
    text: str
    parameters: tuple[Parameter, ...]
    run: Run | None
    metrics: tuple[str, ...]
    is_possible: Callable[[Values], bool] = lambda values: True

    def parameter(self, name: str, source: str) -> Parameter:
        """Return a parameter by name. Raises InputError if the study does not have it."""
        for each in self.parameters:
            if each.name == name:
                return each
        known = ", ".join(each.name for each in self.parameters)
        raise InputError(
            f"is no parameter of {self.name} (want one of {known})",
            source=source,
            field=cut_short(name),
        )

    def complete(self, values: Values) -> dict[str, Value]:
        """The values, with defaults for missing ones."""
        return {each.name: each.default for each in self.parameters} | dict(values)


def _known_fields(model: type, values: Values) -> dict[str, object]:
    known = {each.name for each in fields(model)}
    return {name: value for name, value in values.items() if name in known}


def _run_omega(values: Values, seed: int) -> Metrics:
    fields_of_model = {
        **_known_fields(omega.OmegaModel, values),
        "cell": CELLS[str(values["cell"])],
    }
    return omega.simulate(omega.OmegaModel(**fields_of_model), seed)  # type: ignore[arg-type]


def _run_gap(values: Values, seed: int) -> Metrics:
    return parsync.extra_slots(parsync.GapModel(**_known_fields(parsync.GapModel, values)), seed)  # type: ignore[arg-type]


def _policy_model(values: Values) -> policies.PolicyModel:
    fields_of_model = _known_fields(policies.PolicyModel, values)
    percentages = str(values["phases"]).split("/")
    phases = tuple(float(each) / PERCENT for each in percentages)
    fields_of_model |= {"phases": phases, "variance_between_partitions": values["between"]}
    return policies.PolicyModel(**fields_of_model)  # type: ignore[arg-type]


def _run_policies(values: Values, seed: int) -> Metrics:
    return policies.simulate(_policy_model(values), seed)


PERCENT: Final = 100.0
DAY_S: Final = 86_400.0

CONFLICTS: Final = Parameter("conflicts", "fit", "conflict detection", choices=("fit", "version"))
TRANSACTION: Final = Parameter(
    "transaction",
    "incremental",
    "kind of transaction",
    choices=("incremental", "all-or-nothing"),
)

OMEGA: Final = Study(
    "omega",
    "service and batch schedulers on one shared cell (Omega, EuroSys 2013)",
    (
        Parameter("cell", "example", "cell (of machines and jobs)", choices=tuple(CELLS)),
        Parameter("machines", 10_000, "number of machines", 1, 1_000_000),
        Parameter("load", 0.6, "share of the cell used at the start (0 to 1)", 0.0, 0.99),
        Parameter("batch_schedulers", 1, "number of batch schedulers", 1, 256),
        Parameter("service_schedulers", 1, "number of service schedulers", 1, 256),
        Parameter("job_s", 0.1, "decision time per batch job", 0.0, DAY_S),
        Parameter("task_s", 0.005, "decision time per batch task", 0.0, DAY_S),
        Parameter("service_job_s", 0.1, "decision time per service job", 0.0, DAY_S),
        Parameter("service_task_s", 0.005, "decision time per service task", 0.0, DAY_S),
        Parameter("batch_rate", 1.0, "arrival rate of batch jobs (relative)", 0.001, 1000.0),
        Parameter("service_rate", 1.0, "arrival rate of service jobs (relative)", 0.001, 1000.0),
        CONFLICTS,
        TRANSACTION,
        Parameter("placement", "first-fit", "placement of tasks", choices=tuple(PLACEMENTS)),
        Parameter("sample", 0, "number of machines scored for a task (0: all)", 0, 1_000_000),
        Parameter("staleness_s", 0.0, "maximum age of a view", 0.0, DAY_S),
        Parameter("batch", 1, "number of jobs decided on one view", 1, 65_536),
        Parameter("horizon_s", 14_400.0, "virtual time of a run", 1.0, 100 * DAY_S),
    ),
    _run_omega,
    (
        "service_conflict_fraction",
        "batch_conflict_fraction",
        "service_busyness",
        "batch_busyness",
        "service_wait_s",
        "batch_wait_s",
        "service_retries",
        "batch_tasks_per_s",
        "batch_score_regret",
        "utilization",
    ),
)

EXTRA_SLOTS: Final = Study(
    "extra-slots",
    "slots needed beyond the tasks of a sync gap (ParSync, ATC 2021)",
    (
        Parameter("schedulers", 20, "number of schedulers", 1, 1000),
        Parameter("partitions", 20, "number of partitions (1: StateSync)", 1, 10_000),
        Parameter("sync_gap_s", 0.5, "sync gap (to refresh all of a view)", 0.001, 60.0),
        Parameter("tasks_per_s", 40_000.0, "arrival rate of tasks (all together)", 1.0, 1e6),
        Parameter("capacity_per_s", 4_000.0, "attempt rate of one scheduler", 1.0, 1e6),
        Parameter("variance", 0.0, "variance of the slots' scores", 0.0, 100.0),
        Parameter("look", "fresh", "choice of partitions", choices=("fresh", "all")),
    ),
    _run_gap,
    ("extra_slots", "extra_share", "conflict_fraction", "feasible"),
)

POLICIES: Final = Study(
    "policies",
    "where partitioned schedulers look first, over phases of load (ParSync, ATC 2021)",
    (
        Parameter("policy", "adaptive", "policy (where to look first)", choices=policies.POLICIES),
        Parameter("schedulers", 20, "number of schedulers", 1, 1000),
        Parameter("partitions", 20, "number of partitions", 1, 10_000),
        Parameter("slots", 200_000, "number of slots", 100, 10_000_000),
        Parameter("sync_gap_s", 0.5, "sync gap (to refresh all of a view)", 0.001, 60.0),
        Parameter("task_mean_s", 5.0, "mean duration of a task", 0.01, DAY_S),
        Parameter("capacity_per_s", 2_500.0, "attempt rate of one scheduler", 1.0, 1e6),
        Parameter("variance", 1.0, "variance of the slots' scores", 0.0, 100.0),
        Parameter("between", 0.5, "share of variance between partitions (0 to 1)", 0.0, 1.0),
        Parameter("adaptive_wait_s", 0.1, "wait from which adaptive looks for fresh", 0.0, 60.0),
        Parameter("phase_s", 20.0, "virtual time of each phase", 1.0, DAY_S),
        Parameter(
            "phases",
            "50/80/95/80/50",
            "load of the phases (percent)",
            choices=("50/80/95/80/50", "50", "80", "95"),
        ),
    ),
    _run_policies,
    ("wait_s", "conflict_fraction", "quality", "tasks_per_s", "phase3_wait_s", "utilization"),
    is_possible=lambda values: _policy_model(values).steps_per_phase > 0,
)

MODEL_STUDIES: Final = {each.name: each for each in (OMEGA, EXTRA_SLOTS, POLICIES)}


def model_runs(shared: Mapping[str, Plain]) -> RunTask:
    """Return the function of one run of a sweep over a model, for `roadstead.sweeps`.

    shared: `study`. A task has `values` and `seed`; its result is the metrics.
    """
    run = MODEL_STUDIES[str(shared["study"])].run
    assert run is not None, "only the product's study has no function"

    def run_task(task: Mapping[str, Plain]) -> Plain:
        values, seed = task["values"], task["seed"]
        return dict(run(cast("Values", values), cast("int", seed)))

    return run_task
