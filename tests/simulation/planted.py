"""Planted bugs: small wrong changes, each of which the simulation must find within a few seeds.

`BUGS` lists them with the faults that they need and the seeds that find them; docs/simulation.md
describes each. A bug is planted by patching one function, in the way of a typical mistake.
"""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from unittest.mock import patch

import numpy as np

from roadstead.actors.cache import actor as cache_actor
from roadstead.actors.cache.stream import ChangeStream
from roadstead.actors.cache.worker_feed import WorkerFeed
from roadstead.actors.interface import NOTHING
from roadstead.actors.queue import actor as queue_actor
from roadstead.actors.supervisor.replacing import Refill
from roadstead.actors.worker.table_follower import TableFollower
from roadstead.attempts.attempt_store import AttemptStore
from roadstead.attempts.commands import Forget
from roadstead.attempts.core import AttemptsCore
from roadstead.attempts.pods import BindOutcome, BindResult
from roadstead.binder import commits
from roadstead.binder.binder import Binder
from roadstead.binder.core import BinderCore
from roadstead.binder.verification import Verifier
from roadstead.cache.core import CacheCore, CacheResult
from roadstead.cycle.tentative import Tentative
from roadstead.framework.hint_map import HintMap
from roadstead.framework.members import GroupMembers
from roadstead.framework.plugin import FilterResult
from roadstead.framework.waiting import WaitingPods
from roadstead.journal.files import FileJournal
from roadstead.placements import Placements
from roadstead.plugins.node_ports import NodePorts
from roadstead.protocol.status import SUCCESS, unschedulable
from roadstead.queue.core import QueueCore
from roadstead.queue.gangs import Gangs
from roadstead.queue.lease_order import LeaseOrder
from roadstead.queue.nominations import QueueNominations
from roadstead.revisions import Revisions
from roadstead.scheduler import preempting
from roadstead.scheduler.needs import NominatePods
from roadstead.scheduler.performer import Performer
from roadstead.storage.assumed_claims import AssumedClaims

NETWORK = ("lost", "duplicated", "slow", "partition", "pause")


@dataclass(frozen=True, slots=True)
class Bug:
    """plant: makes the change through a function (object, name, new). seeds: the seeds to run.

    found: the first seed that found it in the last run of all bugs (scripts/planted.py). among: the
    variant of the runs.
    """

    name: str
    plant: Callable
    kinds: tuple = ()
    seed: int = 0
    within: int = 20
    found: int | None = None
    among: str = "plain"

    @property
    def seeds(self):
        return range(self.seed, self.seed + self.within)


def find(bug, simulate):
    """The first seed that finds a bug, with its problem; None where no seed does."""
    with ExitStack() as stack:
        bug.plant(lambda *what: stack.enter_context(patch.object(*what)))
        for seed in bug.seeds:
            try:
                problems = simulate(seed, bug.kinds, among=bug.among).problems
            except Exception as failure:
                # As when the contents of a disk can no longer be read.
                problems = [f"{type(failure).__name__}: {failure}"]
            if problems:
                return seed, problems[0]
    return None


BUGS = []


def bug(kinds=(), seed=0, within=20, found=None, among="plain"):
    def register(plant):
        name = plant.__name__.replace("_", " ").strip()
        BUGS.append(Bug(name, plant, tuple(kinds), seed, within, found, among))
        return plant

    return register


def _skip_for(concerned):
    """A binder that does not re-check one kind of pods."""
    verify = Verifier.verify

    def careless(self, facts, node_name):
        return SUCCESS if concerned(facts) else verify(self, facts, node_name)

    return careless


@bug(found=0)
def the_binder_checks_nothing(put):
    put(Verifier, "verify", _skip_for(lambda facts: True))


@bug(found=0)
def the_binder_does_not_check_spread(put):
    put(Verifier, "verify", _skip_for(lambda facts: facts.spread_constraints))


@bug(found=0)
def the_binder_does_not_check_a_pods_own_anti_affinity(put):
    put(Verifier, "verify", _skip_for(lambda facts: facts.pod_anti_affinity))


@bug(found=0)
def the_binder_does_not_check_the_anti_affinity_of_others(put):
    put(Verifier, "verify", _skip_for(lambda facts: dict(facts.labels).get("app") == "shy"))


@bug(found=3)
def the_binder_does_not_check_affinity(put):
    put(Verifier, "verify", _skip_for(lambda facts: facts.pod_affinity))


@bug(found=1)
def the_binder_does_not_check_ports(put):
    put(Verifier, "verify", _skip_for(lambda facts: facts.host_ports))


@bug(found=0)
def the_binder_does_not_check_claims(put):
    put(Verifier, "verify", _skip_for(lambda facts: facts.volumes))


@bug(found=2)
def the_binder_trusts_old_counts(put):
    put(Verifier, "_is_valid", lambda self, known, profile, pod_class, *, quick: True)


@bug(found=0)
def a_gang_is_committed_in_part(put):
    put(commits, "refused_groups", lambda *ignored: {})


@bug(found=0)
def a_bind_is_acknowledged_before_the_flush(put):
    put(FileJournal, "flush", lambda self: None)


@bug(found=0)
def a_bind_is_acknowledged_and_never_written(put):
    def forgetful(self, effect):
        return self.core.flushed(effect.last_lsn)

    original = Binder._write

    def write(self, effect):
        binds = [each for each in effect.records if each.kind == "bind"]
        return forgetful(self, effect) if binds and self.batches == 3 else original(self, effect)

    put(Binder, "_write", write)


@bug(found=0)
def an_evicted_pod_still_counts_at_the_binder(put):
    original = BinderCore._release

    def release(self, *what, **how):
        with patch.object(Placements, "remove_pod", lambda self, uid: []):
            return original(self, *what, **how)

    put(BinderCore, "_release", release)


@bug(found=8)
def an_evicted_pod_still_counts_at_the_cache(put):
    put(
        preempting,
        "NominatePods",
        lambda nominations, gone, known: NominatePods(nominations, (), known),
    )


@bug(found=0)
def victims_stay_on_the_table(put):
    original = Tentative.preempt
    put(Tentative, "preempt", lambda self, pod, node_name, _: original(self, pod, node_name, ()))


@bug(found=1)
def victims_that_were_not_evicted_stay_removed(put):
    original = Tentative.undo_unconfirmed

    def undo_unconfirmed(self):
        self._leaving.clear()
        original(self)

    put(Tentative, "undo_unconfirmed", undo_unconfirmed)


@bug(found=0)
def a_chain_keeps_the_victims_of_its_preemptors(put):
    put(Tentative, "preempt", lambda self, pod, node_name, victims: True)


@bug(found=0)
def forgotten_pods_stay_counted(put):
    put(CacheCore, "forget", lambda self, batch: CacheResult())


@bug(found=0)
def a_forgotten_pod_is_removed_from_another_node(put):
    original = ChangeStream.send

    def send(self, deltas):
        names = sorted(self._encoder._core.placements.nodes)
        wrong = [
            each._replace(node_name=names[0]) if each.kind == "remove_pod" else each
            for each in deltas
        ]
        original(self, wrong)

    put(ChangeStream, "send", send)


@bug(kinds=("duplicated", "slow", "lost"), found=0)
def a_late_copy_of_an_assumption_is_counted(put):
    put(CacheCore, "_remember_ended", lambda self, uid, token: None)


@bug(found=0)
def a_change_is_never_sent(put):
    original = ChangeStream._send

    async def send(self, name, batch):
        if batch.first_seq % 7:
            await original(self, name, batch)

    put(ChangeStream, "_send", send)


@bug(kinds=("duplicated",), found=0)
def a_change_that_arrives_twice_is_applied_twice(put):
    original = TableFollower.receive

    async def receive(self, batch):
        if batch.first_seq <= self.applied:
            self.applied = batch.first_seq - 1
        return await original(self, batch)

    put(TableFollower, "receive", receive)


@bug(kinds=("slow",), found=0)
def changes_are_applied_in_the_order_of_arrival(put):
    def next_batch(self):
        for first in sorted(self._waiting_batches):
            self.applied = first - 1
            return self._waiting_batches.pop(first)
        return None

    put(TableFollower, "_next_batch", next_batch)


@bug(kinds=("slow",), found=0)
def a_batch_begins_before_its_table_is_up_to_date(put):
    async def at_once(self, seq):
        return None

    put(TableFollower, "_wait_for", at_once)
    put(Verifier, "verify", _skip_for(lambda facts: True))


@bug(kinds=("lost", "duplicated"), found=0)
def a_lease_never_ends(put):
    put(QueueCore, "expire", lambda self, now_s: ())


@bug(kinds=NETWORK, found=0)
def a_bind_after_the_end_of_its_lease_is_ignored(put):
    put(QueueCore, "assigned", lambda self, uids: ())


@bug(found=0)
def a_pod_that_lost_a_race_is_dropped(put):
    original = QueueCore.requeue

    def requeue(self, lease_id, pods, now_s):
        self.done(lease_id, [pod.uid for pod in pods if pod.reason == "conflict"])
        rest = [pod for pod in pods if pod.reason != "conflict"]
        return original(self, lease_id, rest, now_s)

    put(QueueCore, "requeue", requeue)


@bug(found=0)
def every_event_is_ignored(put):
    put(HintMap, "is_of_interest", lambda self, event: False)


@bug(found=3)
def new_nodes_are_not_reported_to_the_queue(put):
    async def observe(self, changes):
        return NOTHING

    put(queue_actor.QueueActor, "observe", observe)


@bug(found=0)
def a_token_is_used_again(put):
    put(AttemptStore, "next_tokens", lambda self, count: [f"{self._token_prefix}1"] * count)


@bug(found=0)
def refused_placements_are_not_forgotten(put):
    original = Performer.perform

    def perform(self, effects):
        return original(self, [each for each in effects if not isinstance(each, Forget)])

    put(Performer, "perform", perform)


@bug(kinds=NETWORK, found=0)
def a_bind_without_an_answer_counts_as_refused(put):
    def timed_out(self, tokens):
        why = [BindResult(token, BindOutcome.CONFLICT, "", "no answer") for token in tokens]
        return self.bind_answered(why)

    put(AttemptsCore, "timed_out", timed_out)


@bug(found=0)
def used_ports_are_ignored(put):
    def careless(self, state, pod, table):
        return FilterResult.refuse(np.zeros(len(table), dtype=np.bool_), unschedulable("none"))

    put(NodePorts, "filter", careless)


@bug(kinds=NETWORK, found=8)
def claims_of_a_forgotten_pod_stay_bound(put):
    put(AssumedClaims, "forget", lambda self, uid: ())


@bug(found=0)
def removed_pods_are_subtracted_twice(put):
    original = Placements.remove_pod

    def remove_pod(self, uid):
        node_name = self.node_of(uid)
        facts = self.facts_of(uid)
        deltas = original(self, uid)
        row = self.store.table.row_facts(node_name) if node_name in self.nodes else {}
        if row.get("pods", 0):
            self.store.remove_pod(node_name, facts)
        return deltas

    put(Placements, "remove_pod", remove_pod)


@bug(kinds=("lost",), found=8)
def a_follower_leaves_nominations_out_of_its_changes(put):
    original = TableFollower._apply

    def apply(self, batch):
        seen = tuple("" if kind == "withdraw" else kind for kind in batch.kinds)
        with_gaps = replace(batch, kinds=seen) if "" in seen else batch
        if with_gaps is not batch:
            self.applied = batch.first_seq + len(batch.kinds) - 1
            return
        original(self, batch)

    put(TableFollower, "_apply", apply)


@bug(kinds=("crash",), found=0)
def a_recovered_binder_forgets_the_last_bind(put):
    original = FileJournal.recovered_groups

    def recovered_groups(self):
        found = [record for group in original(self) for record in group]
        last = max((n for n, each in enumerate(found) if each.kind == "bind"), default=None)
        yield [each for n, each in enumerate(found) if n != last]

    put(FileJournal, "recovered_groups", recovered_groups)


@bug(kinds=("crash",), found=0)
def a_new_queue_does_not_receive_the_waiting_pods(put):
    async def nothing(self):
        return None

    put(Refill, "_fill_queue", nothing)


@bug(kinds=("crash",), found=0)
def a_new_follower_does_not_receive_the_current_state(put):
    original = Refill._call

    async def call(self, name, method, message):
        return NOTHING if method.name == "restream" else await original(self, name, method, message)

    put(Refill, "_call", call)


@bug(kinds=("crash",), within=131, found=91)
def assumptions_of_a_scheduler_that_ended_are_kept(put):
    async def nothing(self, name, names):
        return None

    put(Refill, "_end_owner", nothing)


@bug(kinds=NETWORK, found=0)
def the_binders_answer_on_an_expired_assumption_is_not_final(put):
    put(BinderCore, "void", lambda self, tokens: [])


@bug(kinds=(*NETWORK, "changes"), found=0)
def late_copies_of_removed_objects_are_applied(put):
    put(Revisions, "apply_addition", lambda self, name, revision=0: True)


@bug(kinds=NETWORK, found=0)
def a_pod_that_was_evicted_while_it_waited_is_queued_again(put):
    put(Revisions, "apply_unsent_removal", lambda self, name: None)


@bug(found=0)
def changes_for_an_idle_worker_are_never_sent(put):
    put(WorkerFeed, "_send_waiting", lambda self: self.drop())


@bug(kinds=(*NETWORK, "crash"), within=400, found=None)
def queue_and_cache_do_not_agree_on_nominations(put):
    async def nothing(self):
        return None

    put(Refill, "_reconcile_nominations", nothing)


@bug(found=0)
def gangs_are_split_between_schedulers(put):
    put(LeaseOrder, "_groups_elsewhere", lambda self, owner: set())


@bug(kinds=(*NETWORK, "crash", "changes"), found=3)
def a_late_member_does_not_receive_the_number_of_bound_members(put):
    put(GroupMembers, "record_bound", lambda self, key, bound: None)


@bug(kinds=(*NETWORK, "crash", "changes"), found=6)
def a_new_queue_does_not_receive_the_bound_members(put):
    async def nothing(self, batch):
        return NOTHING

    put(queue_actor.QueueActor, "bound_members", nothing)


@bug(kinds=(*NETWORK, "crash", "changes"), found=10)
def rejected_members_are_not_tried_again_with_their_gang(put):
    put(Gangs, "activate_gangs", lambda self, gangs, now_s: None)


@bug(kinds=(*NETWORK, "crash", "changes"), found=0)
def a_surplus_member_ends_its_gang(put):
    put(WaitingPods, "before_permit", lambda self: iter(()))


@bug(kinds=(*NETWORK, "crash", "changes"), found=0)
def a_pod_that_is_submitted_again_loses_its_nomination(put):
    put(QueueCore, "_update", _forgetting_nominations)


def _forgetting_nominations(self, entry, facts, now_s, events):
    if events is not None or entry.facts != facts:
        self._back.update(entry, facts, now_s, [None] if events is None else events)


@bug(kinds=(*NETWORK, "crash", "changes"), found=0)
def a_nomination_counts_after_the_end_of_its_lease(put):
    put(QueueNominations, "note_stale", lambda self, back, stale: None)


@bug(kinds=("changes",), found=0)
def deleted_pods_stay_counted_at_the_cache(put):
    async def remove_pods(self, pods):
        return NOTHING

    put(cache_actor.CacheActor, "remove_pods", remove_pods)


@bug(kinds=("changes",), found=0)
def a_removed_node_stays_in_the_tables(put):
    original = TableFollower._apply

    def apply(self, batch):
        kinds = tuple("withdrawn" if kind == "remove_node" else kind for kind in batch.kinds)
        if kinds != batch.kinds:
            self.applied = batch.first_seq + len(kinds) - 1
            return
        original(self, batch)

    put(TableFollower, "_apply", apply)
