"""A scheduling cycle without actors, called at random: on which state pods are decided.

Each need and each decision is compared with a plain model of the rules: when the cycle reads, how
old its state may be, when it simulates latency, which scope a pod gets, where a batch ends. Time
passes, and the cluster changes, while its needs are met.
"""

import random
from dataclasses import replace
from unittest.mock import patch

from roadstead.config.concurrency import DecisionTime, JobTime
from roadstead.config.settings import Settings
from roadstead.cycle import scheduling_cycle
from roadstead.cycle.batch import CompiledKernel, PodInCycle
from roadstead.cycle.batch_builder import MAX_BATCH_PODS
from roadstead.cycle.jobs import SimulatedLatency
from roadstead.cycle.needs import CatchUp, ListBest, Phase, Prepare, ScoreClasses, WaitUntil
from roadstead.cycle.partitions import Partition
from roadstead.cycle.scheduling_cycle import CycleParts, SchedulingCycle
from roadstead.facts.pod import GroupMembership, PodIdentity
from roadstead.framework.tie_break import TieBreak
from roadstead.framework.waiting import WaitingPod
from roadstead.kernel.decision_counts import DecisionCounts
from tests.builders import ROW_PLUGINS, node, pod, profile_of, table_of
from tests.cycle.noted_nodes import NotedNodes
from tests.simulation.bystanders import compiled
from tests.simulation.naive import Naive

TIMES, STEPS = 5, 12
AT_ONCE = 3
NAME = "default-scheduler"
WAITING = "waiting"
"""A gang that always has a pod waiting for Permit."""


def problems_of(drawn):
    """Return the first few differences from the model."""
    with patch.object(scheduling_cycle, "DECISIONS_PER_PAUSE", AT_ONCE):
        for time in range(TIMES):
            world = _World(random.Random(f"ramble cycle {drawn} {time}"))
            for step in range(STEPS):
                world.step()
                if world.problems:
                    return [f"batch {time}/{step} at random: {each}" for each in world.problems[:2]]
    return []


class _World:
    """A cycle, its nodes, and a mirror of them on which each pod is decided again.

    _read_s: by scope (whether it covers own nodes), the time of its last read while that is fresh
    enough; _reach: maximum number of pods in the next batch, after batches that ended early.
    """

    def __init__(self, draw):
        self._draw, self.problems, self._now_s, self._number = draw, [], 5.0, 0
        hosts = [node(f"n{n}", cpu=draw.choice((300, 900))) for n in range(draw.randint(1, 5))]
        self._nodes, self._mirror = NotedNodes(table_of(*hosts)), table_of(*hosts)
        self._partition_of = {host.name: draw.randrange(2) for host in hosts}
        settings, self._is_parted = self._settings(), draw.random() < 0.5
        if self._is_parted:
            settings = {**settings, "mode": "partitioned", "schedulers": 2, "partitions": 2}
        self._settings_used = settings = Settings(**settings)
        self._exact = settings.concurrency == "exact"
        self._profile = profile_of(ROW_PLUGINS, classes=self._nodes.table.classes)
        self._partition = Partition(settings, 0, self._partition_of) if self._is_parted else None
        self._few = draw.choice((None, None, 1, 2))
        limit_batch = (lambda cycle, pods: pods[: self._few]) if self._few else None
        parts = (self._nodes, settings, {NAME: self._profile}, None, self._partition, limit_batch)
        self._latency = settings.decision_time
        waits = pod(pod_group=GroupMembership(WAITING, 2))
        waiting = WaitingPod(PodIdentity("w", "default", "w"), waits, "n0", ("Coscheduling",))
        self._profile.waiting.connect(lambda uid: None, lambda: (waiting,))
        self.cycle = SchedulingCycle(CycleParts(*parts), SimulatedLatency(self._latency))
        self._naive = Naive(self._mirror, TieBreak(settings.tie_break, settings.seed))
        code = compiled() if draw.random() < 0.5 else None
        self._compiled_kernel = CompiledKernel(code, DecisionCounts()) if code else None
        self._read_s, self._paid, self._passed_on = {}, set(), set()
        self._reach = dict.fromkeys((False, True), MAX_BATCH_PODS)
        self._passed_count = 0
        self._pods = [self._new_pod() for _ in range(6)]

    def _settings(self):
        draw = self._draw
        settings = {"schedulers": draw.choice((1, 2, 2))}
        if settings["schedulers"] > 1:
            settings["staleness_s"] = draw.choice((0.0, 2.0, 10.0))
        if draw.random() < 0.5:
            job_s, task_s = draw.choice((0.0, 1.0, 5.0)), draw.choice((0.0, 0.5))
            settings["decision_time"] = DecisionTime(batch=JobTime(job_s=job_s, task_s=task_s))
        return settings

    def _new_pod(self):
        self._number += 1
        facts = pod(cpu=self._draw.choice((100, 200, 800, 2000)))
        if not self._latency.is_positive and self._draw.random() < 0.4:
            # Of a gang with or without waiting pods, see `WAITING`.
            gang = GroupMembership(self._draw.choice(("g1", "g2", WAITING)), 2)
            facts = replace(facts, pod_group=gang)
        pod_class = self._nodes.table.classes.pod_class(facts)
        signature = self._profile.signature_of(pod_class, f"u{self._number}")
        return PodInCycle(f"u{self._number}", f"d/p{self._number}", pod_class, signature)

    def _expect(self, is_so, text):
        if not is_so:
            self.problems.append(text)

    # Changes during the steps.

    def _pass(self):
        self._now_s += self._draw.choice((0.0, 0.0, 0.5, 1.5, 4.0))

    def _change(self):
        """Change the cluster: other schedulers' pods end or are added."""
        draw = self._draw
        host = draw.choice(self._mirror.names)
        uid = f"other-{draw.randrange(4)}"
        pod_class = self._nodes.table.classes.pod_class(pod(cpu=100))
        for table in (self._nodes.table, self._mirror):
            there = [name for name in table.node_names() if _is_on(table, name, uid)]
            for name in there:
                table.remove_pod(name, pod_class, uid=uid)
            if not there:
                table.add_pod(host, pod_class, uid=uid, key=f"d/{uid}")

    # A batch.

    def step(self):
        draw = self._draw
        self._pass()
        if draw.random() < 0.15:
            self.cycle.drop()
            self._read_s.clear()
        while len(self._pods) < 6:
            self._pods.append(self._new_pod())
        if self._is_parted and draw.random() < 0.2:
            self._partition.record_lease(draw.randrange(200), draw.randrange(3))
            self._passed_on.clear()
        scope, pods = self.cycle.next(self._pods)
        wanted = self._pods_of(scope)
        uids = _uids(pods), _uids(wanted)
        is_same = list(pods) == wanted[: len(pods)] and _may_end(wanted, len(pods))
        self._expect(is_same, f"{uids[0]} are decided together, not {uids[1]}")
        account = self._account(scope, list(pods), self._now_s)
        decisions, done_count = self._driven(self.cycle.decide(scope, pods, self._now_s), account)
        self._expect(done_count > 0, "no pod is decided or passed on")
        self._passed_count += done_count - len(decisions)
        passed_on = self.cycle.passed_on
        self._expect(
            passed_on == self._passed_count, f"{passed_on} passed on, not {self._passed_count}"
        )
        gone = {each.pod.uid for each in decisions}
        self._pods = [each for each in self._pods if each.uid not in gone]
        draw.shuffle(self._pods)

    def _driven(self, steps, account):
        """Return the result of the steps; each need, and the result, equals the model's."""
        answer = None
        wanted = next(account)
        while True:
            try:
                need = steps.send(answer)
            except StopIteration as end:
                outcome = [each.node_name for each in end.value[0]], end.value[1]
                self._expect(outcome == wanted, f"{outcome} is decided, not {wanted}")
                return end.value
            answer = None
            if isinstance(need, Phase):
                continue
            if isinstance(need, ListBest):
                self._expect(self._may_list(need), f"needs {need}")
                continue
            name = type(need).__name__
            self._expect(_is_like(need, wanted), f"needs {need}, not {wanted}")
            is_held = name == "YieldToMessages"
            self._expect(self._nodes.is_held == is_held, f"at {name} held: {self._nodes.is_held}")
            if self.problems:
                steps.close()
                return (), 1
            self._meet(need)
            wanted = account.send(self._now_s)
            answer = self._compiled_kernel if isinstance(need, Prepare) else self._now_s

    def _may_list(self, need):
        """Workers are called while nothing changes, for pods of this batch on all nodes."""
        asked = set(_uids(need.pods)) <= set(_uids(self._pods)) and len(need.pods) == len(
            need.tie_break_hashes
        )
        is_own = self._is_own(need.pods[0])
        return asked and not is_own and self._few is not None and self._nodes.is_held

    def _meet(self, need):
        self._now_s = max(self._now_s, getattr(need, "at_s", 0.0))
        if isinstance(need, CatchUp) and self._draw.random() < 0.6:
            self._change()
        if not isinstance(need, Prepare):
            self._pass()

    # The model.

    def _is_own(self, each):
        if self._partition is None or self._settings_used.partition_policy != "latency-first":
            return self._partition is not None and self._partition.tries_own_nodes_first(each)
        return each.uid not in self._passed_on

    def _pods_of(self, scope):
        """The pods that are decided next: of one scope and one job, at most as many as workers are
        asked about.
        """
        is_own = self._is_own(self._pods[0])
        self._expect(scope.is_own == is_own, f"{self._pods[0].key} takes the scope {scope.is_own}")
        pods = [each for each in self._pods if self._is_own(each) == is_own]
        pods = pods[: self._reach[is_own]][: self._few]
        return pods[:1] if self._latency.is_positive else pods

    def _is_old(self, scope, now_s):
        staleness_s = self._settings_used.staleness_s
        read_s = self._read_s.get(scope.is_own)
        return read_s is None or staleness_s is None or now_s - read_s > staleness_s

    def _account(self, scope, pods, now_s):
        """Yield the expected needs, and the result; receive the time after each."""
        new = [each.uid for each in pods if each.uid not in self._paid]
        self._paid.update(new)
        batch = self._latency.batch
        wait_s = batch.job_s + batch.task_s * len(new) if new else 0.0
        if wait_s and self._exact:
            now_s = yield WaitUntil(now_s + wait_s)
            wait_s = 0.0
        is_fresh = self._is_old(scope, now_s)
        if is_fresh:
            now_s = yield from self._read(scope, now_s)
        if wait_s:
            now_s = yield WaitUntil(now_s + wait_s)
            staleness_s = self._settings_used.staleness_s
            if staleness_s is not None and self._is_old(scope, now_s):
                is_fresh = True
                now_s = yield from self._read(scope, now_s)
        found = yield from self._attempt(scope, pods, is_fresh)
        if not is_fresh and not found[1]:
            now_s = yield "ReadClock"
            yield from self._read(scope, now_s)
            found = yield from self._attempt(scope, pods, True)
        reach = self._reach[scope.is_own]
        self._reach[scope.is_own] = 2 * reach if found[1] == len(pods) else found[1]
        yield found

    def _read(self, scope, now_s):
        """The state that is read is as old as the request."""
        self._read_s[scope.is_own] = now_s
        return (yield CatchUp())

    def _attempt(self, scope, pods, is_fresh):
        yield Prepare(len(pods))
        if self._few:
            yield ScoreClasses(scope, pods)
            if is_fresh and not self._latency.is_positive:
                yield CatchUp(is_again=True)
        nodes, placed, place = [], [], 0
        while place < len(pods):
            if run := self._run(scope, pods[place : place + AT_ONCE]):
                nodes += run
                placed += pods[place : place + len(run)]
                place += len(run)
                yield "YieldToMessages"
                continue
            each = pods[place]
            found = self._found(scope, each)
            if found is None and not is_fresh:
                self._read_s.pop(scope.is_own, None)
                break
            place += 1
            if found is None and scope.is_own:
                self._passed_on.add(each.uid)
                continue
            nodes.append(found)
            if found is None and _leaves_others(each, placed):
                self._read_s.pop(scope.is_own, None)
                break
            if found is not None:
                placed.append(each)
                self._mirror.add_pod(found, each.pod_class, uid=each.uid, key=each.key)
            staleness_s = self._settings_used.staleness_s
            if place % AT_ONCE == 0:
                now_s = yield "YieldToMessages"
                if staleness_s is not None and self._is_old(scope, now_s):
                    break
        yield "ApplyWaiting"
        return nodes, place

    def _run(self, scope, pods):
        """Return the nodes of the pods that the kernel decides in one run, as long as they fit."""
        nodes = []
        for each in pods if self._compiled_kernel else ():
            if (found := self._found(scope, each)) is None:
                break
            nodes.append(found)
            self._mirror.add_pod(found, each.pod_class, uid=each.uid, key=each.key)
        return nodes

    def _found(self, scope, each):
        profile = self._profile
        if scope.is_own:
            profile = profile.with_filter(self._partition.nodes)
        verdict = self._naive.decide(profile, each.pod_class, each).verdict
        return verdict and verdict.node_name


def _leaves_others(each, placed):
    """Whether other pods of its gang wait, or were placed earlier in this batch."""
    gang = each.pod_class.facts.pod_group
    is_there = any(one.pod_class.facts.pod_group == gang for one in placed)
    return gang is not None and (is_there or gang.name == WAITING)


def _is_like(need, wanted):
    if isinstance(wanted, str):
        return type(need).__name__ == wanted
    if isinstance(wanted, ScoreClasses):
        return isinstance(need, ScoreClasses) and list(need.pods) == list(wanted.pods)
    return need == wanted


def _may_end(pods, place):
    """Whether a batch may end before a pod: only a pod of a further class or shape is one too
    many.
    """
    known = {(each.signature, each.pod_class.shape) for each in pods[:place]}
    if not known or place == len(pods):
        return bool(known)
    return (pods[place].signature, pods[place].pod_class.shape) not in known


def _is_on(table, name, uid):
    return any(resident.uid == uid for resident in table.residents.on(name))


def _uids(pods):
    return [each.uid for each in pods]
