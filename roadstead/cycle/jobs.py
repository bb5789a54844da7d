"""Jobs: the pods of one gang or one controller, for which one decision time is simulated.

A pod without either is a job by itself. The duration of a decision is simulated as in Omega
(Schwarzkopf et al., EuroSys 2013, section 3): a constant for the job and one for each of its pods,
with separate constants for service jobs and batch jobs.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from roadstead.config.concurrency import JOB_KIND_LABEL, DecisionTime, JobKind
from roadstead.cycle.batch import PodInCycle
from roadstead.facts.pod import PodFacts

MAX_DELAYED = 65_536
"""Maximum number of stored attempts that were delayed; the oldest is dropped."""


def job_of(facts: PodFacts) -> str:
    """Return the job of a pod; "" for a pod that is a job by itself."""
    if facts.pod_group is not None:
        return f"{facts.namespace}/gang/{facts.pod_group.name}"
    owner = facts.owner
    return "" if owner is None else f"{facts.namespace}/{owner.kind}/{owner.uid or owner.name}"


def pods_of_first_job(pods: Sequence[PodInCycle]) -> Sequence[PodInCycle]:
    """Return the pods of the first pod's job, for which one latency is simulated."""
    job = job_of(pods[0].pod_class.facts)
    return [pod for pod in pods if job_of(pod.pod_class.facts) == job] if job else pods[:1]


def job_kind_of(facts: PodFacts, time: DecisionTime) -> JobKind:
    """Return the kind of a pod's job: from its label, else its profile's, else batch."""
    kind_label = dict(facts.labels).get(JOB_KIND_LABEL)
    if kind_label == "service":
        return "service"
    if kind_label == "batch":
        return "batch"
    return time.profiles.get(facts.scheduler_name, "batch")


class SimulatedLatency:
    """Simulated latency of decisions, per job; each attempt of a pod is delayed once.

    _delayed: (UID, number of the attempt) of attempts that were delayed.
    """

    def __init__(self, time: DecisionTime) -> None:
        self._time = time
        self._delayed: OrderedDict[tuple[str, int], None] = OrderedDict()

    @property
    def is_on(self) -> bool:
        return self._time.is_positive

    def wait_s(self, pods: Sequence[PodInCycle]) -> float:
        """Return the seconds of delay for pods of one job; each attempt is delayed once."""
        if not self.is_on:
            return 0.0
        new = [pod for pod in pods if (pod.uid, pod.attempt) not in self._delayed]
        if not new:
            return 0.0
        self._delayed.update(dict.fromkeys((pod.uid, pod.attempt) for pod in new))
        while len(self._delayed) > MAX_DELAYED:
            self._delayed.popitem(last=False)
        return self._time.of(job_kind_of(new[0].pod_class.facts, self._time)).of(len(new))
