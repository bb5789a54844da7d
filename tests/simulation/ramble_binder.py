"""Random calls of a binder, for situations that runs seldom reach: lives of it on a copy of a run's
journal are called at random, followed by their shadows, and recovered again and again.

Late copies and contradictions of all messages: binds, removals, updates, evictions, fences; with
gangs, transactions and claims; small segments and snapshots; in the end a failing disk.
"""

import random
from dataclasses import replace

from roadstead.actors.binder.actor import BinderActor
from roadstead.actors.interface import NOTHING
from roadstead.actors.messages import (
    BindBatch,
    CommitPage,
    Evict,
    PageRequest,
    RunEnded,
    RunningPods,
    node_batch,
    pod_list,
)
from roadstead.actors.messages.changes import NodeNames
from roadstead.actors.messages.recovery import OwnerEpoch, PodRemoval, ResolveAttempts, Uids
from roadstead.binder import BindConflictError, BinderHaltedError
from roadstead.binder.answers import BindAnswers
from roadstead.cache.volumes import CacheVolumes
from roadstead.facts.pod import GroupMembership, PodIdentity
from roadstead.facts.pod import Owner as PodOwner
from roadstead.invariants.devices import Devices
from roadstead.journal import JournalError, NullJournal
from roadstead.journal.bound_pods import BoundPods
from roadstead.journal.files import FileJournal
from roadstead.journal.segments import Reader
from roadstead.protocol.errors import IllegalTransitionError
from roadstead.storage.claim_messages import AttemptBindings
from tests.builders import GIB, pod
from tests.journal.simulated_disk import SimulatedDisk
from tests.simulation.damage import unnoticed
from tests.simulation.devices import as_consumer, without_devices
from tests.simulation.disk_faults import DiskFault
from tests.simulation.shadow_binder import ShadowBinder
from tests.simulation.shadow_groups import Gangs
from tests.simulation.shadow_journal import ShadowJournal, WatchedJournal
from tests.simulation.shadow_life import ShadowLife

LIVES, CALLS = 3, 30
PODS, NEW = 12, 6
OWNERS = ("scheduler-0", "scheduler-1", "nobody")


def problems_of(plan, scenario, disk, limits, drawn):
    """Return the first few differences between a binder that is called at random and its shadows.

    disk: a copy of the disk that a run left; it is written to.
    """
    draw = random.Random(f"ramble binder {drawn}")
    snapshot_bytes = draw.choice((600, 3000, 10**9))
    segment_bytes = draw.choice((300, 2000, limits.segment_bytes))
    binder = {
        **limits.binder,
        "max_gone_remembered": draw.choice((1, 4, 65_536)),
        "max_tokens": draw.choice((6, 16, 64)),
        "max_unflushed": draw.choice((1, 2, 100, 100)),
    }
    sizes = {"snapshot_bytes": snapshot_bytes, "segment_bytes": segment_bytes}
    limits = replace(limits, binder=binder, **sizes)
    conflicts = draw.choice((plan.settings.conflicts, "fit", "version"))
    plan = replace(plan, settings=plan.settings.model_copy(update={"conflicts": conflicts}))
    problems = []
    shadow = ShadowJournal.begun(disk, limits, problems)
    with limits.applied():
        for life in range(LIVES):
            ramble = _Ramble(plan, scenario, disk, shadow, draw)
            ramble.go_on(CALLS)
            problems += ramble.devices_overdrawn(plan)
            if not problems and (life == LIVES - 1 or draw.random() < 0.4):
                ramble.fail()
            if problems:
                return [f"called at random: {each}" for each in problems[:2]]
            ramble.end(is_last=life == LIVES - 1)
        problems += unnoticed(disk, drawn)
        if not problems and plan.settings.conflicts == "fit":
            shadow = ShadowJournal(SimulatedDisk(short_writes=0.0), limits, problems)
            twins = _Twins(plan, scenario, shadow._disk, shadow, draw)
            twins.go_on(CALLS)
            twins.end(is_last=True)
    return [f"called at random: {each}" for each in problems[:2]]


class _Ramble:
    """One life. revision: of the last change that was sent."""

    def __init__(self, plan, scenario, disk, shadow, draw):
        journal = WatchedJournal(disk, shadow, segment_bytes=shadow.limits.segment_bytes)
        self._actor, self._draw, self._disk = BinderActor(plan, None, journal), draw, disk
        self._problems, self._journal = shadow.problems, journal
        ShadowLife(self._actor, plan, shadow, shadow.problems)
        self._core = self._actor.core
        self._volumes = CacheVolumes(plan.storage_state(), plan.binding_profiles())
        binder = self._actor.binder
        self._volumes.apply(binder.volumes.log)
        known = (binder.node_revisions.latest, binder.pod_revisions.latest)
        self._revision, self._tokens, self._sent = max(known) + 1, 0, []
        pods = scenario.pods
        self._pods = draw.sample(pods, min(PODS, len(pods))) + self._new_pods(pods)
        self._classes = [facts for _, facts in self._pods]
        self._plain = pod(cpu=1)
        # Some of the run's nodes, which are full, and large ones.
        large = (("cpu", 64_000), ("memory", 64 * GIB))
        few = list(scenario.nodes[:4])
        self._nodes = few + [
            replace(node, name=f"r-{node.name}", allocatable=large, allocatable_pods=200)
            for node in few[:3]
        ]
        self._do("add_nodes", node_batch(self._nodes, self._revision))

    def _called(self, name, message):
        return _done(getattr(self._actor, name)(message))

    def _new_pods(self, pods):
        facts = [facts for _, facts in self._draw.sample(pods, min(NEW, len(pods)))]
        plain = replace(without_devices(facts[0]), pod_group=None, volumes=())
        facts += [
            replace(plain, pod_group=GroupMembership("ramble", 2)),
            replace(plain, pod_group=GroupMembership("ramble", 2), labels=(("a", "b"),)),
            replace(plain, owner=PodOwner("Job", "ramble", "")),
        ]
        named = [
            (PodIdentity(f"uid-r{number}-{each.namespace}", each.namespace, f"r{number}"), each)
            for number, each in enumerate(facts)
        ]
        return [(who, as_consumer(who, each)) for who, each in named]

    def go_on(self, calls):
        kinds = (
            *(
                (self._bind, 8),
                (self._bind_plain, 3),
                (self._add_pending, 4),
                (self._delete, 2),
                (self._evict, 2),
            ),
            *((self._update, 2), (self._nodes_come, 3), (self._nodes_go, 1), (self._run, 1)),
            *((self._resolve, 2), (self._fence, 1), (self._ask, 3), (self._again, 2)),
            (self._contradict, 1),
        )
        for _ in range(calls):
            (kind,) = self._draw.choices([k for k, _ in kinds], [weight for _, weight in kinds])
            kind()
            if self._problems:
                return

    def fail(self):
        """The disk fails: from then on every request is refused."""
        kind = self._draw.choice(("sync", "stops", "short", "nothing"))
        at = self._disk.steps + self._draw.randint(1, 8)
        self._disk.fault = DiskFault(kind, at, 0.0)
        self.go_on(CALLS)
        if self._core.halted is not None:
            for kind in (
                *(self._bind_plain, self._bind, self._resolve, self._fence, self._update),
                *(self._add_pending, self._delete, self._evict, self._run),
            ):
                kind()
            self._core.flushed(self._core.last_lsn)
            self._go_behind_the_binder()
        self._disk.fault = None

    def _go_behind_the_binder(self):
        """A journal that has failed accepts no appends from any caller."""
        try:
            FileJournal.append(self._journal, [])
        except JournalError:
            return
        if self._journal.has_failed:
            self._problems.append("a journal that has failed takes records")

    def end(self, *, is_last):
        if self._core.halted is None and self._draw.random() < 0.5:
            self._do("stop", NOTHING)
        if self._core.halted is None:
            self._core.validate()
            self._compare_bound()
        try:
            self._core.flushed(self._core.last_lsn + 1)
            self._problems.append("records that were never written are flushed")
        except IllegalTransitionError:
            pass
        self._actor.release()
        if self._disk.locked:
            self._problems.append("an actor that ended keeps the folder of its journal")
        if is_last or self._draw.random() < 0.5:
            self._disk.crash()

    def _compare_bound(self):
        """The bound pods by the journal, as run checks and resumed runs read them."""
        bound = BoundPods()
        for group in Reader(self._disk).groups():
            bound.apply(group)
        here = self._core.pods.present.values()
        pods = (each for each in here if each.bound is not None and each.token)
        if bound.pods != (wanted := {pod.uid: (pod.key, pod.node_name) for pod in pods}):
            self._problems.append(f"by its journal {bound.pods} are bound, not {wanted}")

    def _do(self, name, message):
        """Call a handler that does not wait. An error is expected where its journal has failed."""
        try:
            return self._called(name, message)
        except BinderHaltedError:
            if self._core.halted is None:
                self._problems.append(f"{name} is refused, and the journal has not failed")
        except JournalError:
            # It tried to take a snapshot.
            if not self._disk.met:
                raise
        except BindConflictError:
            pass
        return None

    def _some(self, things, least=0, most=3):
        things = list(things)
        return self._draw.sample(things, min(len(things), self._draw.randint(least, most)))

    def _next_revision(self):
        """A change's revision; at times that of a late copy, or none."""
        draw = self._draw.random()
        self._revision += draw < 0.6
        return self._revision if draw < 0.8 else 0 if draw < 0.9 else max(0, self._revision - 2)

    def _as_now(self, pods):
        """Pods as the binder has them, with a few changes."""
        for who, facts in pods:
            record = self._core.pods.find(who.uid)
            known = facts if record is None else record.facts
            yield who, self._other(who) if self._draw.random() < 0.05 else known

    def _other(self, who):
        """Other valid facts of a pod."""
        return replace(self._draw.choice(self._classes), namespace=who.namespace)

    # Pods.

    def _add_pending(self):
        pods = self._some(self._pods, 1, 5)
        some = [
            (who, self._other(who) if self._draw.random() < 0.2 else facts) for who, facts in pods
        ]
        self._do("add_pending", pod_list(some, self._next_revision()))

    def _update(self):
        pods = [(who, self._other(who)) for who, _ in self._some(self._pods, 1)]
        self._do("update_pods", pod_list(pods, self._next_revision()))

    def _delete(self):
        uids = tuple(who.uid for who, _ in self._some(self._pods, 1))
        self._do("delete_pods", PodRemoval(uids, self._next_revision()))

    def _evict(self):
        uids = tuple(who.uid for who, _ in self._some(self._pods, 2))
        preemptors = tuple(self._draw.choice(("default/one", "default/other")) for _ in uids)
        self._do("evict", Evict(uids, preemptors))

    def _run(self):
        """Pods that run already, sometimes waiting ones: another scheduler bound them."""
        may = ("unknown", "deleted") if self._draw.random() < 0.7 else ("unknown", "pending")
        pods = [
            (who, facts)
            for who, facts in self._some(self._pods)
            if self._core.pod_status(who.uid)[0].value in may
        ]
        nodes = tuple(self._draw.choice(self._nodes).name for _ in pods)
        self._do("add_running", RunningPods(pod_list(pods), nodes))

    # Binds.

    def _bind(self):
        draw = self._draw
        if self._sent and draw.random() < 0.15:
            self._do("bind", draw.choice(self._sent))
            return
        owner = draw.choice(OWNERS)
        epoch = max(1, (self._core.current_epoch(owner) or 1) + draw.choice((0, 0, 0, 1, -1)))
        pending = [each for each in self._pods if self._is_pending(each[0].uid)]
        pods = self._some(pending, 1, 6) + (
            self._some(self._pods, 0, 1) if draw.random() < 0.2 else []
        )
        pods = list(self._as_now(pods))
        nodes = tuple(draw.choice(self._nodes).name for _ in pods)
        if draw.random() < 0.05:
            nodes = ("away",) * len(pods)
        rows = self._core.row_versions
        read = [max(0, rows.of(node) - (draw.random() < 0.1)) for node in nodes]
        tokens = tuple(self._token(owner, epoch) for _ in pods)
        jobs = draw.choice(((), (), ("job",), ("", "job"), ("job", "other"))) * len(pods)
        jobs = jobs[: len(pods)]
        jobs = jobs if len(jobs) == len(pods) else ()
        volumes = self._reserved(pods, nodes, tokens)
        rows = pods, nodes, tokens, read, jobs
        if not volumes and draw.random() < 0.1:
            # One request appears in it twice.
            rows = [[*each, *each[:1]] for each in rows]
        if pods and not volumes and draw.random() < 0.15:
            # Some requests are sent before the others, and again with them.
            few = draw.randint(1, len(pods))
            some, *more = (each[:few] for each in rows)
            nodes, tokens, read, jobs = map(tuple, more)
            self._do("bind", BindBatch(owner, epoch, pod_list(some), nodes, tokens, (), read, jobs))
        pods, nodes, tokens, read, jobs = rows
        batch = BindBatch(
            *(owner, epoch, pod_list(pods), tuple(nodes), tuple(tokens)),
            *(volumes, tuple(read), tuple(jobs)),
        )
        self._sent.append(batch)
        if (answers := self._do("bind", batch)) is not None:
            self._finish(answers)

    def _bind_plain(self):
        """Bind ordinary pods to nodes with room: they commit without checks, unless a node
        changed.
        """
        draw, owner = self._draw, self._draw.choice(OWNERS)
        self._do("add_nodes", node_batch(self._nodes[-3:]))
        # Of two classes, so that the binder caches both.
        facts, other = draw.sample((self._plain, replace(self._plain, labels=(("b", "b"),))), 2)
        if draw.random() < 0.2:
            facts = replace(facts, pod_group=GroupMembership(f"few{self._tokens}", 2))
        names = [
            f"p{self._core.last_lsn}-{number}" for number in range(draw.choice((1, 2, 3, 20, 20)))
        ]
        pods = [(PodIdentity(f"uid-{name}", "default", name), facts) for name in names]
        coming = pod_list(pods)
        if draw.random() < 0.3:
            pods[-1] = pods[-1][0], other
        epoch = max(1, self._core.current_epoch(owner) or 1)
        nodes = tuple(draw.choice(self._nodes[-3:]).name for _ in pods)
        tokens = tuple(self._token(owner, epoch) for _ in pods)
        # Sometimes as if all of them were decided before the last change.
        age = draw.choice((0, 0, 0, 4))
        read = tuple(max(0, self._core.last_lsn - age) for _ in pods)
        if draw.random() < 0.15:
            # One request appears in it twice.
            pods, nodes, tokens, read = ((*each, each[0]) for each in (pods, nodes, tokens, read))
        batch = BindBatch(owner, epoch, pod_list(pods), nodes, tokens, read_versions=read)
        self._sent.append(batch)
        if draw.random() < 0.2:
            # Refused because the pods are unknown; permanently, even if the pods are added later.
            self._do("bind", batch)
        self._do("add_pending", coming)
        self._do("bind", batch)

    def _is_pending(self, uid):
        return self._core.pod_status(uid)[0].value == "pending"

    def _token(self, owner, epoch):
        if self._draw.random() < 0.04:
            # Sometimes voided before its bind arrives.
            return f"nobody/1/{self._draw.randint(0, 3)}"
        self._tokens += 1
        return f"{owner}/{epoch}/r{len(self._core._tokens)}-{self._core.last_lsn}-{self._tokens}"

    def _reserved(self, pods, nodes, tokens):
        """Bindings of claims as a cache would reserve them."""
        found = []
        for (who, facts), name, token in zip(pods, nodes, tokens, strict=True):
            node = self._core.placements.nodes.get(name)
            has_claims = facts.may_bind_claims
            reserved = self._volumes.assume(who.uid, facts, node) if has_claims else None
            if reserved is not None and (reserved.bindings or reserved.device_claims):
                claims = self._stolen(reserved.device_claims)
                found.append(AttemptBindings(token, reserved.bindings, claims))
        return tuple(found)

    def _stolen(self, claims):
        """Claims of devices as reserved, at times one with the devices of another claim."""
        known = self._actor.binder.volumes.device_claims.values() if claims else ()
        held = [each.allocation for each in known if each.allocation is not None]
        if not held or self._draw.random() < 0.7:
            return claims
        return (replace(claims[0], allocation=self._draw.choice(held)), *claims[1:])

    def devices_overdrawn(self, plan):
        """Return what no allocation of the binder's may be, by the rules of the checker."""
        devices = Devices()
        devices.begin(plan.cluster.devices)
        return [
            text for change in self._actor.binder.volumes.log for text in devices.change(change)
        ]

    def _finish(self, answers):
        for each in answers.answers:
            if each.cause:
                self._volumes.forget([each.uid])
            else:
                self._volumes.assumed_claims.confirm(each.uid)

    def _again(self):
        """Repeat an earlier batch, with other nodes or with a later epoch."""
        if not self._sent:
            return
        batch = self._draw.choice(self._sent)
        if self._draw.random() < 0.5:
            batch = replace(batch, nodes=batch.nodes[::-1])
        else:
            batch = replace(batch, tokens=tuple(f"{each}x" for each in batch.tokens), volumes=())
        self._do("bind", batch)

    def _contradict(self):
        """Remove or change pods that never existed, directly at the core."""
        name, what = self._draw.choice(
            (("delete", "never"), ("evict", "never"), ("update_pods", ("never", self._plain)))
        )
        try:
            getattr(self._core, name)([what])
            self._problems.append(f"{name} of a pod that was never there is taken")
        except (IllegalTransitionError, BinderHaltedError):
            pass

    # Nodes, and lives of schedulers.

    def _nodes_come(self):
        nodes = self._some(self._nodes, 1, 7)
        if self._draw.random() < 0.3:
            grown = lambda node: tuple((n, v * 2) for n, v in node.allocatable)  # noqa: E731
            nodes = [replace(node, allocatable=grown(node)) for node in nodes]
        self._do("add_nodes", node_batch(nodes, self._next_revision()))

    def _nodes_go(self):
        names = tuple(node.name for node in self._some(self._nodes, 1, 1))
        self._do("remove_nodes", NodeNames(names, self._next_revision()))

    def _resolve(self):
        pairs = [(who.uid, self._known_token()) for who, _ in self._some(self._pods)]
        if self._draw.random() < 0.2:
            # Sometimes more than are remembered.
            name = self._core.last_lsn
            pairs += [
                (f"uid-{name}", f"nobody/{name}/{n}") for n in range(self._draw.choice((3, 9)))
            ]
        self._do("resolve", ResolveAttempts(tuple(u for u, _ in pairs), tuple(t for _, t in pairs)))

    def _known_token(self):
        tokens = [token for batch in self._sent[-3:] for token in batch.tokens]
        return self._draw.choice([*tokens, f"nobody/1/{self._draw.randint(0, 3)}"])

    def _fence(self):
        owner = self._draw.choice(OWNERS)
        epoch = (self._core.current_epoch(owner) or 0) + self._draw.choice((-1, 0, 1))
        self._do("fence_owner", OwnerEpoch(owner, max(1, epoch)))

    def _ask(self):
        page = PageRequest(self._draw.randint(0, 3), self._draw.choice((0, 2, 5000)))
        for name, message in self._some(
            (
                ("pod_nodes", Uids(tuple(who.uid for who, _ in self._some(self._pods)))),
                *((name, page) for name in ("pods_page", "nodes_page", "bound", "preempted")),
                ("commits", page),
                *((name, NOTHING) for name in ("evicted_pods", "storage_log", "revisions")),
                ("end_run", RunEnded("digest")),
            ),
            1,
        ):
            self._do(name, message)


class _Twins(_Ramble):
    """Two binders, one without a journal: both answer the same, except for numbers."""

    def __init__(self, plan, scenario, disk, shadow, draw):
        self._twin = BinderActor(plan, None, NullJournal())
        self._followed = ShadowBinder(self._twin.core, Gangs(plan), self._wrong)
        super().__init__(plan, scenario, disk, shadow, draw)

    def _wrong(self, text):
        self._problems.append(f"shadow of a binder without a journal: {text}")

    def _called(self, name, message):
        answer = other = None
        try:
            answer = super()._called(name, message)
        except BindConflictError as conflict:
            answer = type(conflict)
        try:
            other = _done(getattr(self._twin, name)(message))
        except BindConflictError as conflict:
            other = type(conflict)
        if _but_numbers(answer) != _but_numbers(other):
            difference = f"{str(_but_numbers(other))[:300]}, not {str(_but_numbers(answer))[:300]}"
            self._problems.append(f"without a journal {name} is answered by {difference}")
        return None if isinstance(answer, type) else answer


def _done(handler):
    """The result of a handler that does not wait."""
    try:
        handler.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("it waits")


def _but_numbers(answer):
    if isinstance(answer, CommitPage):
        return answer.uids, [count for count, *_ in answer.times], answer.total
    if isinstance(answer, BindAnswers):
        return [(a.token, a.uid, a.node_name, a.cause, a.reasons) for a in answer.answers]
    return answer
