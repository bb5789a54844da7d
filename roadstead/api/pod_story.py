"""The life of one pod of a simulated run, from the run's tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import Path
from typing import Final, cast

from roadstead.api.run_folder import RecordedRun
from roadstead.api.run_query import RunQuery
from roadstead.inputs.find_pod import kind_of
from roadstead.protocol.errors import InputError, cut_short

CHANGES_MAX: Final = 5
"""Maximum number of changes that are listed; earlier ones are counted."""

NAMES_MAX: Final = 5
"""Maximum number of names in an error text."""


@dataclass(frozen=True, slots=True)
class StoredPod:
    """A row of the table `pods`; times are None for what did not occur.

    number: of the pod within its run. pod_class: number of its pod class, a row of the table
    `classes`. ending: how it ended.
    """

    number: int
    uid: str
    owner: str | None
    pod_class: int
    priority: int
    created_us: int
    bound_us: int | None
    started_us: int | None
    ended_us: int | None
    ending: str | None
    node: str | None
    preemptor: str | None


@dataclass(frozen=True, slots=True)
class Attempts:
    """Equal attempts in succession, from the table `attempts`.

    outcome: "bound" or "pending". node: that it was bound to, or "". nominated: the nominated node,
    or "". message: why it was refused; "" if it was bound. plugins: that refused it. victims: UIDs
    of the pods that were preempted for it. Lists are separated by commas.
    """

    first_us: int
    last_us: int
    count: int
    outcome: str
    node: str
    nominated: str
    message: str
    plugins: str
    victims: str = ""


@dataclass(frozen=True, slots=True)
class StoryEntry:
    """Something that happened between the last failed attempt and the bind."""

    time_us: int
    text: str


@dataclass(frozen=True, slots=True)
class PodStory:
    """The life of a pod, without an explanation.

    run: name of the run. requests: of the pod, as JSON. changes: the latest before the bind, in
    order of time; more_changes: number of earlier ones since the last failed attempt.
    """

    run: str
    pod: StoredPod
    requests: str
    attempts: tuple[Attempts, ...]
    changes: tuple[StoryEntry, ...] = ()
    more_changes: int = 0


_SELECT_POD: Final = (
    "SELECT number, uid, owner, class, priority, created_us, bound_us, started_us, ended_us, "
    "ending, node, preemptor FROM pods WHERE "
)
_MATCHES: Final = (
    (
        "uid = $name OR name = $name OR namespace || '/' || name = $name",
        "is the name of several pods; name one by its UID",
    ),
    (
        "owner = $owner OR ends_with(owner, '/' || $name)",
        "is a workload; name one of its pods",
    ),
    (
        "starts_with(name, $name) OR starts_with(uid, $name)",
        "is no pod; the names of several pods begin with it",
    ),
)
"""Conditions on a pod in the order in which they are tried, each with the rule for several pods."""

_ATTEMPTS: Final = (
    "SELECT time_us, outcome, node, nominated, message, plugins, victims FROM attempts "
    "WHERE pod = $pod ORDER BY time_us"
)
_CHANGES: Final = """
SELECT ended_us AS moment, 'pod ' || uid || ' ended on ' || node || ' (' || ending || ')' AS what
FROM pods WHERE node = $node AND number <> $pod AND ended_us > $after AND ended_us <= $until
UNION ALL SELECT time_us, 'node ' || node || ' was ' || what
FROM nodes WHERE time_us > $after AND time_us <= $until
UNION ALL SELECT time_us, what || ' ' || subject
FROM events WHERE time_us > $after AND time_us <= $until
ORDER BY moment DESC"""


def choose_run(
    runs: Sequence[tuple[Path, RecordedRun]], seed: int | None, config: str | None
) -> tuple[Path, RecordedRun]:
    """Return the first run with a seed and a configuration; None accepts any. Raises InputError."""
    for path, run in runs:
        if seed in (None, run.seed) and config in (None, run.config):
            return path, run
    names = ", ".join(run.name for _, run in runs[:NAMES_MAX])
    raise InputError(f"has no such run with tables (there are: {names})", source=str(path.parent))


def read_story(folder: Path, run: str, name: str) -> PodStory:
    """Return the life of a pod. folder: of one run. InputError unless `name` means one pod."""
    query = RunQuery(folder)
    pod = _find(query, folder, name)
    classes = query.execute(
        "SELECT requests FROM classes WHERE class = $class", {"class": pod.pod_class}
    )
    requests = next((str(each[0]) for each in classes.rows), "{}")
    attempts = _group_equal(list(query.execute(_ATTEMPTS, {"pod": pod.number}).rows))
    failed = [each.last_us for each in attempts if each.outcome != "bound"]
    if pod.bound_us is None or not failed:
        return PodStory(run, pod, requests, attempts)
    values = {
        "node": pod.node,
        "pod": pod.number,
        "after": max(failed),
        "until": pod.bound_us,
    }
    rows = query.execute(_CHANGES, values).rows
    # The latest are first in the result of the query; the others, which may be many, are counted.
    latest = islice(rows, CHANGES_MAX)
    shown = [StoryEntry(cast("int", at_us), str(what)) for at_us, what in latest]
    return PodStory(run, pod, requests, attempts, tuple(shown[::-1]), sum(1 for _ in rows))


def _find(query: RunQuery, folder: Path, name: str) -> StoredPod:
    kind, bare_name = kind_of(name)
    values = {"name": name, "owner": f"{kind}/{bare_name}" if kind else name}
    for where, problem in _MATCHES:
        sql = f"{_SELECT_POD}{where} ORDER BY number LIMIT {NAMES_MAX + 1}"
        parameters = {name: value for name, value in values.items() if f"${name}" in where}
        rows = list(query.execute(sql, parameters).rows)
        if len(rows) == 1:
            return StoredPod(*rows[0])  # type: ignore[arg-type]
        if rows:
            names = ", ".join(str(row[1]) for row in rows[:NAMES_MAX])
            more = ", …" if len(rows) > NAMES_MAX else ""
            raise InputError(f"{problem}: {names}{more}", source=str(folder), value=cut_short(name))
    problem = "is no pod or workload of the run"
    raise InputError(problem, source=str(folder), value=cut_short(name))


def _group_equal(rows: Sequence[tuple[object, ...]]) -> tuple[Attempts, ...]:
    """Merge consecutive rows of `_ATTEMPTS` that differ only in time."""
    attempts = []
    for all_but_time, group in groupby(rows, key=lambda row: row[1:]):
        times = [cast("int", row[0]) for row in group]
        attempts.append(
            Attempts(times[0], times[-1], len(times), *(str(each or "") for each in all_but_time))
        )
    return tuple(attempts)
