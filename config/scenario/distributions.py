"""Schema of times in a scenario's workload: when pods arrive and how long they run.

The docstrings of fields are the texts of docs/scenario.md.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, Tag, model_validator

from roadstead.config.scenario.values import (
    DocumentedAs,
    FileName,
    Fraction,
    Micros,
    PositiveMicros,
    Rate,
    one_of,
    tag,
)
from roadstead.config.settings_model import SettingsModel

TimeUnit = Literal["us", "ms", "s", "m", "h"]
Count = Annotated[int, Field(ge=1, le=1_000_000_000), DocumentedAs("number")]


class FileColumn(SettingsModel):
    """A column of a CSV file with a header."""

    path: FileName
    """CSV file with a header."""

    column: Annotated[str, Field(min_length=1), DocumentedAs("text")]
    """Name of the column."""

    unit: TimeUnit = "s"
    """Unit of the column's numbers."""


class ArrivalWindow(SettingsModel):
    """The time in which arrivals happen."""

    start: Micros = 0
    """Time at which arrivals begin."""

    until: Micros | None = None
    """Time at which arrivals end; by default the horizon."""

    count: Count | None = None
    """Maximum number of arrivals."""

    @model_validator(mode="after")
    def _check_window(self) -> Self:
        if self.until is not None and self.until <= self.start:
            raise ValueError("until must be later than start")
        return self


class PoissonRate(SettingsModel):
    per_hour: Rate
    """Expected arrivals per hour."""


class PoissonArrivals(ArrivalWindow):
    """Arrivals that are independent of each other, at a constant rate."""

    poisson: PoissonRate
    """Rate of the arrivals."""


class RegularArrivals(ArrivalWindow):
    """Arrivals at equal intervals."""

    every: PositiveMicros
    """Interval between two arrivals; the first one is at `start`."""


class BurstSize(SettingsModel):
    size: Count
    """Number of arrivals of one burst."""

    every: PositiveMicros | None = None
    """Interval between the beginnings of two bursts; by default there is one burst."""

    over: Micros = 0
    """Time over which the arrivals of a burst are spread evenly."""

    @model_validator(mode="after")
    def _check_spread(self) -> Self:
        if self.every is not None and self.over > self.every:
            raise ValueError("over must not be longer than every")
        return self


class BurstArrivals(ArrivalWindow):
    """Many arrivals at a time."""

    burst: BurstSize
    """Size and interval of the bursts; the first one is at `start`."""


class DailyRate(SettingsModel):
    per_hour: Rate
    """Mean of the expected arrivals per hour."""

    swing: Fraction = 0.8
    """Difference between the highest rate and the mean, as a part of the mean. The lowest rate is
    below the mean by the same amount."""

    period: PositiveMicros = 86_400_000_000
    """Time from one peak to the next."""

    peak: Micros = 50_400_000_000
    """Time of the first peak."""


class DiurnalArrivals(ArrivalWindow):
    """Independent arrivals, at a rate that follows a sine."""

    diurnal: DailyRate
    """Mean rate and its variation."""


class FileArrivals(ArrivalWindow):
    """Arrivals at the times in a file."""

    file: FileColumn
    """Column of times from the start of the scenario, in any order. `start` is added to them."""


Arrivals = Annotated[
    Annotated[PoissonArrivals, Tag(tag("poisson"))]
    | Annotated[RegularArrivals, Tag(tag("every"))]
    | Annotated[BurstArrivals, Tag(tag("burst"))]
    | Annotated[DiurnalArrivals, Tag(tag("diurnal"))]
    | Annotated[FileArrivals, Tag(tag("file"))],
    one_of("poisson", "every", "burst", "diurnal", "file"),
]


class FixedDuration(SettingsModel):
    fixed: Micros
    """The same time for all; `duration: 20m` is short for it."""


class ExponentialSpec(SettingsModel):
    mean: PositiveMicros
    """Mean of the times."""


class ExponentialDuration(SettingsModel):
    """Exponentially distributed times."""

    exponential: ExponentialSpec
    """Parameters of the distribution."""


class LognormalSpec(SettingsModel):
    median: PositiveMicros
    """Time that half of the pods exceed."""

    p99: PositiveMicros
    """Time that one of a hundred pods exceeds."""

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        if self.p99 < self.median:
            raise ValueError("p99 must not be shorter than median")
        return self


class LognormalDuration(SettingsModel):
    """Log-normally distributed times."""

    lognormal: LognormalSpec
    """Parameters of the distribution."""


class WeibullSpec(SettingsModel):
    scale: PositiveMicros
    """Time that 37% of the pods exceed."""

    shape: Annotated[float, Field(ge=0.1, le=100, allow_inf_nan=False), DocumentedAs("number")]
    """Shape of the distribution: below 1, short and very long times are frequent; 1 is exponential;
    above 1, times are close to `scale`."""


class WeibullDuration(SettingsModel):
    """Weibull-distributed times."""

    weibull: WeibullSpec
    """Parameters of the distribution."""


class UniformSpec(SettingsModel):
    min: Micros
    """Shortest time."""

    max: Micros
    """Longest time."""

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        if self.max < self.min:
            raise ValueError("max must not be shorter than min")
        return self


class UniformDuration(SettingsModel):
    """Times between two bounds, all equally probable."""

    uniform: UniformSpec
    """Bounds of the times."""


class EmpiricalDuration(SettingsModel):
    """Times drawn from those in a file."""

    empirical: FileColumn
    """Column of times; each is drawn with the same probability, again and again."""


def with_fixed(value: object) -> object:
    """Read a plain time as one that is the same for all."""
    return value if isinstance(value, dict) or value is None else {"fixed": value}


DURATIONS = ("fixed", "exponential", "lognormal", "weibull", "uniform", "empirical")
"""Keys of the distributions; a document has exactly one of them."""

TaggedDuration = (
    Annotated[FixedDuration, Tag(tag("fixed"))]
    | Annotated[ExponentialDuration, Tag(tag("exponential"))]
    | Annotated[LognormalDuration, Tag(tag("lognormal"))]
    | Annotated[WeibullDuration, Tag(tag("weibull"))]
    | Annotated[UniformDuration, Tag(tag("uniform"))]
    | Annotated[EmpiricalDuration, Tag(tag("empirical"))]
)
"""A distribution; pydantic selects the model by the tag of its first key."""

Duration = Annotated[TaggedDuration, one_of(*DURATIONS), BeforeValidator(with_fixed)]
