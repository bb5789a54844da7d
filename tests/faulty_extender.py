"""An extender in this process that answers wrongly, for tests and for simulated runs.

    faults = Faults(seed, drop=0.1, refuse=0.1, slow=0.2)
    plan = RunPlan(settings, config_of(extender()))
    Supervisor(runtime, plan, caller_of=faults.caller_of)

The plan's configuration names it like any other extender. It opens no socket and starts no
thread; its delays pass on the loop's clock.
"""

import json
import random
from collections import Counter
from dataclasses import dataclass, field

import yaml

from roadstead.extenders.caller import InProcessExtenders, TransportError
from roadstead.extenders.http import HttpCaller

URL = "http://extender.test/faulty"
REFUSED = "dial tcp extender.test:80: connect: connection refused"
LATE = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
ERROR_MESSAGE = "the extender reports an error"
NO_NODE = "no-such-node"
HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


def extender(**fields):
    """Return an extender's configuration, with the verbs filter, prioritize, preempt and bind."""
    verbs = {f"{verb}Verb": verb for verb in ("filter", "prioritize", "preempt", "bind")}
    return {"urlPrefix": URL, "weight": 1, "nodeCacheCapable": True, **verbs, **fields}


def config_of(*extenders, config=""):
    """Return a KubeSchedulerConfiguration with these extenders, added to `config`."""
    document = yaml.safe_load(config) if config else HEAD
    return json.dumps(document | {"extenders": list(extenders)})


@dataclass
class Faults:
    """Probabilities of each fault per call, drawn from the seed.

    refuse: the connection is refused. drop: the connection closes without an answer. status:
    HTTP 500. garbage: no JSON. error: the reply's error field. unknown: the reply names a node that
    was not in the request. none_left: all nodes fail, half of them for good. late: no answer before
    the deadline. slow: an answer after up to `slow_max_s`. verbs: the calls that have faults.
    per_pod: maximum number of a pod's calls that fail; None for no limit. happened: number of times
    that each fault was drawn.
    """

    seed: object = 0
    refuse: float = 0.0
    drop: float = 0.0
    status: float = 0.0
    garbage: float = 0.0
    error: float = 0.0
    unknown: float = 0.0
    none_left: float = 0.0
    late: float = 0.0
    slow: float = 0.0
    slow_max_s: float = 2.0
    verbs: tuple = ("filter", "prioritize", "preempt", "bind")
    per_pod: int | None = None
    happened: Counter = field(default_factory=Counter)
    calls: list = field(default_factory=list)

    def __post_init__(self):
        self.caller_of = InProcessExtenders(self._caller)
        self._random = random.Random(f"extender {self.seed}")
        self._failed = Counter()

    def _caller(self, config, clock):
        return HttpCaller(config, _Transport(self, config, clock))

    def drawn(self, fault, verb, pod):
        """Draw whether this call for a pod has a fault."""
        found = verb in self.verbs and self._random.random() < getattr(self, fault)
        if found and fault != "slow":
            self._failed[pod] += 1
            found = self.per_pod is None or self._failed[pod] <= self.per_pod
        self.happened[fault] += found
        return found

    def uniform(self, high):
        return self._random.uniform(0.0, high)


@dataclass
class _Transport:
    """Carries requests to an extender that lets every node pass, apart from its faults."""

    faults: Faults
    config: object
    clock: InProcessExtenders

    def post(self, verb, body):
        faults, payload = self.faults, json.loads(body)
        pod = _uid(payload)
        faults.calls.append(verb)
        if faults.drawn("refuse", verb, pod):
            raise TransportError(REFUSED)
        if faults.drawn("late", verb, pod):
            self.clock.add_time(self.config.http_timeout_s)
            raise TransportError(LATE)
        if faults.drawn("slow", verb, pod):
            self.clock.add_time(faults.uniform(faults.slow_max_s))
        if faults.drawn("drop", verb, pod):
            raise TransportError("EOF")
        if faults.drawn("status", verb, pod):
            return 500, b""
        if faults.drawn("garbage", verb, pod):
            return 200, b"not json"
        return 200, json.dumps(self._reply(verb, payload, pod)).encode()

    def _reply(self, verb, payload, pod):
        faults = self.faults
        if verb == "prioritize":
            return [{"Host": name, "Score": len(name) % 10} for name in _names(payload)]
        if verb == "preempt":
            return {"NodeNameToMetaVictims": _meta_victims(payload)}
        if faults.drawn("error", verb, pod):
            return {"Error": ERROR_MESSAGE}
        if verb == "bind":
            return {}
        names = _names(payload)
        if faults.drawn("none_left", verb, pod):
            for_good = dict.fromkeys(names[::2], "broken for good")
            failed = dict.fromkeys(names[1::2], "busy")
            return {"FailedNodes": failed, "FailedAndUnresolvableNodes": for_good}
        if faults.drawn("unknown", verb, pod):
            names = [*names, NO_NODE]
        if payload.get("Nodes") is None:
            return {"NodeNames": names}
        return {"Nodes": {"items": [{"metadata": {"name": name}} for name in names]}}


def _uid(payload):
    return payload["PodUID"] if "PodUID" in payload else payload["Pod"]["metadata"]["uid"]


def _names(payload):
    nodes = payload.get("Nodes")
    if nodes is None:
        return list(payload["NodeNames"])
    return [each["metadata"]["name"] for each in nodes["items"]]


def _meta_victims(payload):
    if payload.get("NodeNameToMetaVictims") is not None:
        return payload["NodeNameToMetaVictims"]
    return {
        name: {**each, "Pods": [{"UID": pod["metadata"]["uid"]} for pod in each["Pods"]]}
        for name, each in payload["NodeNameToVictims"].items()
    }
