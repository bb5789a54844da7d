"""Gangs in the core of a scheduler, by seed: placed completely or not at all, in any history."""

import random
from collections import Counter

import pytest

from roadstead.attempts.commands import Assume, Bind, Forget, RequeuePods
from roadstead.attempts.core import AttemptsCore
from roadstead.attempts.pods import AttemptState, BindOutcome, BindResult
from roadstead.cycle.batch import Decision, PodInCycle
from roadstead.facts.pod import GroupMembership
from roadstead.framework.diagnosis import Diagnosis
from roadstead.framework.plugin import Handle
from roadstead.framework.profile import Profile
from roadstead.nodes.pod_class import PodClasses
from roadstead.plugins.in_tree import in_tree_registry
from roadstead.protocol.status import unschedulable
from tests.builders import config_of, pod
from tests.inside import next_deadline_s, reserved_in

POINTS = {point: ["Coscheduling"] for point in ("preFilter", "postFilter", "reserve", "permit")} | {
    "bind": ["DefaultBinder"]
}
WAIT_S = 10
ROOM = 14
ROUNDS = 40


class Simulation:
    """A cluster with limited room, a queue that returns every failed pod, and a binder."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.classes = PodClasses()
        profile = self.profile = Profile(
            config_of(POINTS), in_tree_registry(), Handle(self.classes)
        )
        self.core = AttemptsCore("s", 1, {"default-scheduler": profile})
        self.plugin = profile.permit[0]
        self.now_s = 0.0
        self.leases = 0
        self.waiting = []
        self.assumed = set()
        self.bound = set()
        self.group_of, self.least = {}, {}
        for gang in range(self.random.randint(2, 5)):
            self.least[gang] = self.random.randint(1, 6)
            for number in range(self.least[gang] + self.random.randint(-1, 2)):
                uid = f"g{gang}-{number}"
                self.group_of[uid] = gang
                self.waiting.append(uid)

    def facts(self, uid):
        gang = self.group_of[uid]
        group = GroupMembership(f"gang-{gang}", self.least[gang], WAIT_S)
        return pod(cpu=100, pod_group=group)

    def in_cycle(self, uid, attempt):
        pod_class = self.classes.pod_class(self.facts(uid))
        return PodInCycle(uid, f"default/{uid}", pod_class, "class", attempt)

    def step(self):
        """Decide a batch of some pods in some order, or wait; apply the results."""
        self.now_s += self.random.choice([0.0, 1.0, 5.0])
        self.perform(self.core.tick(self.now_s))
        count = self.random.randint(0, len(self.waiting))
        batch = self.random.sample(self.waiting, count)
        self.waiting = [uid for uid in self.waiting if uid not in batch]
        self.leases += 1
        pods = {uid: self.in_cycle(uid, self.leases) for uid in batch}
        self.core.lease(self.leases, list(pods.values()))
        free = ROOM - len(self.assumed)
        decisions = [
            Decision(pods[uid], "n1") if place < free else self.to_none(pods[uid])
            for place, uid in enumerate(batch)
        ]
        self.perform(self.core.decided(decisions))
        self.check()

    def to_none(self, asked):
        diagnosis = Diagnosis(1)
        diagnosis.add(unschedulable("Insufficient cpu"), 1)
        return Decision(asked, None, diagnosis=diagnosis)

    def perform(self, effects):
        for effect in effects:
            if isinstance(effect, Assume):
                self.assumed |= {each.uid for each in effect.attempts}
                tokens = [each.token for each in effect.attempts]
                self.perform(self.core.assumed(tokens, [], self.now_s))
            elif isinstance(effect, Forget):
                self.assumed -= {each.uid for each in effect.attempts}
            elif isinstance(effect, RequeuePods):
                self.waiting += [each.uid for each in effect.items]
            elif isinstance(effect, Bind):
                self.bound |= {each.uid for each in effect.attempts}
                answers = [
                    BindResult(each.token, BindOutcome.BOUND, "n1") for each in effect.attempts
                ]
                self.perform(self.core.bind_answered(answers))

    def delete_some(self):
        """Delete a bound or waiting pod, and free its place."""
        living = sorted(self.assumed)
        if living:
            uid = self.random.choice(living)
            self.assumed.discard(uid)
            self.bound.discard(uid)
            self.perform(self.core.deleted([uid]))

    def check(self):
        self.core.validate()
        states = {uid: self.core.state_of(uid) for uid in self.group_of}
        waits = {uid for uid, state in states.items() if state is AttemptState.WAITING}
        assert {each.pod.uid for each in self.profile.waiting} == waits
        assert self.assumed == waits | self.bound
        held = {uid for uids in reserved_in(self.plugin).values() for uid in uids}
        assert held == self.assumed

    def counts(self):
        return Counter(self.group_of[uid] for uid in self.bound)


@pytest.mark.parametrize("seed", range(40))
def test_gangs_are_bound_completely_or_not_at_all(seed):
    world = Simulation(seed)
    for _ in range(ROUNDS):
        world.step()
        for gang, count in world.counts().items():
            assert count >= world.least[gang], f"only {count} pods of gang {gang} are bound"

    world.now_s += WAIT_S
    world.perform(world.core.tick(world.now_s))

    world.check()
    assert world.assumed == world.bound
    assert next_deadline_s(world.core) is None


@pytest.mark.parametrize("seed", range(20))
def test_after_deletions_no_deleted_pod_holds_resources(seed):
    world = Simulation(seed)
    for _ in range(ROUNDS):
        world.step()
        world.delete_some()
        world.check()


def test_some_gang_is_bound_in_every_simulation():
    for seed in range(10):
        world = Simulation(seed)
        for _ in range(ROUNDS):
            world.step()

        assert world.bound, seed
