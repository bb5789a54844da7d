"""Entries of a scenario for `roadstead.Scenario`: nodes (`Fleet`) and pods (`Workload`).

Methods and arguments have the names of the keys in docs/scenario.md. A key whose argument is not
given is not in the document: defaults, values and rules are those of its schema alone.
`tests/api/test_scenario.py` compares the names with the schema.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from roadstead.api.config_source import document_text

FilePath: TypeAlias = "str | os.PathLike[str]"
"""The name of a file; one that is not absolute is relative to the directory of the scenario."""

Object: TypeAlias = "Mapping[str, object]"
"""A mapping with the keys that docs/scenario.md lists for it."""

Template: TypeAlias = "str | os.PathLike[str] | Mapping[str, object]"
"""A file with one object that has a pod template, or a pod template that is written out."""

Duration: TypeAlias = "str | Mapping[str, object]"
"""A time, such as `20m`, or a distribution: `{"exponential": {"mean": "20m"}}`."""


class Entry:
    """An entry of a list of a scenario. It never changes."""

    __slots__ = ("_text",)

    def __init__(self, entry: Object) -> None:
        self._text = document_text(entry, type(self).__name__)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._text}>"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)

    def document(self) -> dict[str, object]:
        """Return the entry as in the document of a scenario."""
        entry: dict[str, object] = json.loads(self._text)
        return entry


def without_none(**keys: object) -> dict[str, object]:
    """Return the arguments that are not None."""
    return {key: value for key, value in keys.items() if value is not None}


class Fleet(Entry):
    """Nodes at the start of a scenario: an entry of `fleet`."""

    @staticmethod
    def generate(
        nodes: int,
        *,
        shape: str | Object | None = None,
        zones: int | None = None,
        name: str | None = None,
    ) -> Fleet:
        """Nodes of one shape, such as `cpu-16` or `gpu-8xA100`, spread over zones."""
        return Fleet({"generate": without_none(nodes=nodes, shape=shape, zones=zones, name=name)})

    @staticmethod
    def manifests(*files: FilePath) -> Fleet:
        """Nodes and other objects of manifests: files, folders or globs."""
        return Fleet({"manifests": [os.fspath(each) for each in files]})

    @staticmethod
    def trace(file: FilePath) -> Fleet:
        """The nodes of a trace."""
        return Fleet({"trace": os.fspath(file)})


class Workload(Entry):
    """Arrivals of a scenario: an entry of `workload`."""

    @staticmethod
    def trace(
        file: FilePath,
        *,
        rate: float | None = None,
        sample: float | str | None = None,
        start_from: str | None = None,
        shift: str | None = None,
        name: str | None = None,
    ) -> Workload:
        """The pods of a trace, with their own arrivals and lifetimes."""
        keys = without_none(rate=rate, sample=sample, start_from=start_from, shift=shift, name=name)
        return Workload({"trace": os.fspath(file), **keys})

    @staticmethod
    def arrivals(
        pods: Template | Sequence[Object],
        *,
        poisson: Object | None = None,
        every: str | None = None,
        burst: Object | None = None,
        diurnal: Object | None = None,
        file: Object | None = None,
        start: str | None = None,
        until: str | None = None,
        count: int | None = None,
        duration: Duration | None = None,
        name: str | None = None,
    ) -> Workload:
        """Pods that arrive over time; one of `poisson`, `every`, `burst`, `diurnal`, `file`.

        pods: a template, or choices as in the document (`template`, `weight`, `gang`). duration:
        how long each runs.
        """
        times = without_none(
            poisson=poisson,
            every=every,
            burst=burst,
            diurnal=diurnal,
            file=file,
            start=start,
            until=until,
            count=count,
        )
        choices = pods if _is_list(pods) else [{"template": pods}]
        return Workload(
            {**without_none(name=name, duration=duration), "arrivals": times, "pods": choices}
        )

    @staticmethod
    def deployment(
        template: Template,
        *,
        name: str | None = None,
        replicas: int | None = None,
        at: str | None = None,
        delete_at: str | None = None,
        scale: Sequence[Object] | None = None,
        rollout: Sequence[Object] | None = None,
        duration: Duration | None = None,
        max_surge: int | str | None = None,
        max_unavailable: int | str | None = None,
    ) -> Workload:
        """A Deployment: lost pods are replaced."""
        return _controller("deployment", locals())

    @staticmethod
    def replica_set(
        template: Template,
        *,
        name: str | None = None,
        replicas: int | None = None,
        at: str | None = None,
        delete_at: str | None = None,
        scale: Sequence[Object] | None = None,
        duration: Duration | None = None,
    ) -> Workload:
        """A ReplicaSet: lost pods are replaced."""
        return _controller("replicaSet", locals())

    @staticmethod
    def stateful_set(
        template: Template,
        *,
        name: str | None = None,
        replicas: int | None = None,
        at: str | None = None,
        delete_at: str | None = None,
        scale: Sequence[Object] | None = None,
        rollout: Sequence[Object] | None = None,
        duration: Duration | None = None,
        pod_management: str | None = None,
    ) -> Workload:
        """A StatefulSet: lost pods are replaced under their names."""
        return _controller("statefulSet", locals())

    @staticmethod
    def daemon_set(
        template: Template,
        *,
        name: str | None = None,
        at: str | None = None,
        delete_at: str | None = None,
        rollout: Sequence[Object] | None = None,
        max_unavailable: int | str | None = None,
    ) -> Workload:
        """A DaemonSet: one pod on each node that its template allows."""
        return _controller("daemonSet", locals())

    @staticmethod
    def job(
        template: Template,
        duration: Duration,
        *,
        name: str | None = None,
        completions: int | None = None,
        parallelism: int | None = None,
        backoff_limit: int | None = None,
        failing: float | str | None = None,
        at: str | None = None,
        delete_at: str | None = None,
    ) -> Workload:
        """A Job: pods that fail or are lost are replaced, up to `backoff_limit`."""
        return _controller("job", locals())


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _controller(key: str, arguments: Mapping[str, object]) -> Workload:
    """Return the entry of a controller. arguments: those of its method."""
    return Workload({key: without_none(**arguments)})
