"""Random decisions of a scheduler's cycle, for situations that runs seldom reach: cycles with
tables of their own decide for a run's plan, nodes and pods at random, and a judge decides again.

A small cluster that changes between any two batches; stale states; pods that were forgotten and are
decided again before the table has the change; attempts that cache or binder refuse; nominations;
users' plugins; samples of a few nodes; a partition that another scheduler takes over.
"""

import random
from dataclasses import replace
from unittest.mock import patch

from roadstead.actors.scheduler.scheduler_nodes import SchedulerNodes
from roadstead.attempts.commands import Assume, Bind, Confirm, Forget, Nominate, RequeuePods
from roadstead.attempts.core import AttemptsCore
from roadstead.attempts.pods import BindOutcome, BindResult
from roadstead.binder.verification import Verifier
from roadstead.cache import CacheCore, CacheSettings, PodOnNode
from roadstead.cache.pods import Assumption
from roadstead.cycle.batch import CompiledKernel, PodInCycle
from roadstead.cycle.batch_builder import BatchBuilder
from roadstead.cycle.continuing_batch import ContinuingBatch
from roadstead.cycle.nominated_batch import NominatedBatch
from roadstead.cycle.partitions import OwnNodes
from roadstead.cycle.scheduling_cycle import after_failure, decide_batch, with_locked_table
from roadstead.facts.pod import PodIdentity, without_nomination
from roadstead.framework import sampling as product_sampling
from roadstead.framework.members import GroupMembers
from roadstead.framework.tie_break import TieBreak
from roadstead.kernel.decision_counts import DecisionCounts
from roadstead.local.drive import run_now
from roadstead.nodes.pod_class import PodClasses
from roadstead.placements import DeltaKind, TableStore
from roadstead.protocol.status import unschedulable
from roadstead.run import build_node_search, build_profiles
from roadstead.storage import AssumedClaims
from tests.builders import GIB, taint
from tests.peculiar_plugins import IsMoody
from tests.simulation import sampling
from tests.simulation.bystanders import compiled
from tests.simulation.drawn_plans import (
    PODS,
    Style,
    alike,
    larger,
    of_kinds,
    own_sizes,
    plan_for,
    wide_pods,
    with_claim,
)
from tests.simulation.opinions import Opinions
from tests.simulation.ramble_coverage import Coverages
from tests.simulation.ramble_held import hear, nominations_at, nominations_of
from tests.simulation.ramble_judge import ShownJudge
from tests.simulation.ramble_lengths import Lengths, small_limits
from tests.simulation.ramble_workers import Workers
from tests.simulation.shadow_verifier import ShadowVerifier

TIMES, STEPS = 8, 30
NODES = 9
FEW = 3
"""A search stops at this many feasible nodes, so that it ends early in a small cluster."""

COMPILED = {Style.LISTS: 1, Style.KINDS: 0.9, Style.ALONE: 0.2, Style.ANY: 0.5}
"""Share of rambles with a kernel."""

OVER = ("new", "unschedulable", "failed", "conflict", "gone")
KINDS = {
    **{"decide": 12, "catch_up": 3, "change": 2, "go": 1, "come": 2, "run": 2, "leave": 2},
    **{"update": 1, "mood": 4, "nominate": 4, "turn": 1, "score": 4, "verify": 5},
}
LISTING = KINDS | {"come": 6, "mood": 0, "nominate": 0, "score": 0, "verify": 1}
"""Where workers list the best nodes: they do so for pods whose scores depend on the node alone."""


def problems_of(plan, scenario, drawn):
    """Return the first few differences between random decisions and a judge's."""
    if "extenders" in plan.config_text or "Raises" in plan.config_text:
        # A plugin that fails once per pod fails for its first caller.
        return []
    with (
        patch.object(product_sampling, "MIN_FEASIBLE_NODES", FEW),
        patch.object(sampling, "LEAST_NODES", FEW),
    ):
        for time in range(TIMES):
            draw = random.Random(f"ramble decisions {drawn} {time}")
            with small_limits(draw):
                if problems := _ramble(_Ramble(plan, scenario, draw)):
                    return [f"at random {time}, {each}" for each in problems[:2]]
    return []


def _ramble(ramble):
    """Return the problems of the first step that has any."""
    for number in range(STEPS):
        ramble.step()
        if problems := ramble.problems():
            return [f"step {number}: {each}" for each in problems]
    return []


class _Ramble:
    """One scheduler without its actor. late: cluster changes that the table does not have yet.

    facts: of the pods that may be decided, by identity.
    """

    def __init__(self, plan, scenario, draw):
        self._draw, self._lease_id, self._number = draw, 0, 0
        IsMoody.mood = 0
        self._reads, self._refused = draw.choice((0.6, 0.6, 0.2)), draw.choice((0.2, 0.2, 0.6))
        self._style = style = Style.of(draw)
        self._lists = lists = style is Style.LISTS
        opinions = Opinions(draw) if style is Style.ANY and draw.random() < 0.5 else None
        self._plan = plan = plan_for(plan, draw, opinions, style)
        self._classes, members = PodClasses(), GroupMembers()
        profiles = build_profiles(plan, self._classes, members=members)
        self._tie_break = TieBreak(plan.settings.tie_break, plan.settings.seed)
        self._held = SchedulerNodes("ramble", plan, self._classes, is_new=False, epoch=1)
        node_search, parts = build_node_search(plan, opinions and opinions.caller_of), {}
        self._is_narrowed = node_search is not None
        is_bound = not node_search and not lists and draw.random() < 0.3
        self._bounds = OwnNodes(parts, (0, 1)) if is_bound else None
        bounds = self._bounds
        self._profiles, self._coverage = profiles, DecisionCounts()
        if bounds is not None:
            self._profiles = {name: each.with_filter(bounds) for name, each in profiles.items()}
        self._parts = parts
        self._judge = ShownJudge(plan, members, bounds, opinions)
        code = compiled() if draw.random() < COMPILED[style] else None
        memory_sharers = draw.choice((1, 1, 100))
        self._cycle = BatchBuilder(
            self._held.table,
            self._profiles,
            self._tie_break,
            name_best=draw.random() < (0.1 if lists else 0.5),
            node_search=node_search,
            compiled_kernel=CompiledKernel(code, self._coverage) if code else None,
            memory_sharers=memory_sharers,
        )
        self._lengths = Lengths(self._cycle, self._profiles, memory_sharers)
        self._coverages = Coverages(self._cycle, self._profiles, self._coverage)
        self._workers = Workers(plan, self._held.table, draw)
        self._verifier = Verifier(self._held.table, profiles)
        self._shadow = ShadowVerifier(self._verifier)
        self.core = AttemptsCore("ramble", 1, profiles)
        self._volumes = AssumedClaims(next(iter(profiles.values())).storage)
        self._cache = CacheCore(TableStore(), CacheSettings())
        self._late, self._arrivals, self._is_owed = [], 0, False
        self._some_nodes(scenario)
        self._some_pods(scenario)

    def problems(self):
        return self._judge.problems + self._workers.problems + self._shadow.problems

    def _some_nodes(self, scenario):
        hosts = list(
            scenario.nodes[: NODES if self._lists else self._draw.choice((2, NODES, NODES))]
        )
        large = (("cpu", 64_000), ("memory", 64 * GIB), ("pods", 20))
        if self._draw.random() < (0.8 if self._lists else 0.4):
            hosts = [
                replace(each, allocatable=large) if number % 2 else each
                for number, each in enumerate(hosts)
            ]
        self._hosts = hosts
        for facts in hosts[: max(1, len(hosts) - 2)]:
            self._send(self._cache.add_node(facts))
        self._catch_up()

    def _some_pods(self, scenario):
        draw = self._draw
        pods = [each for each in scenario.pods if each[1].pod_group is None]
        pods = draw.sample(pods, min(3 if self._lists else PODS, len(pods)))
        if self._style is Style.ALONE:
            pods = [*alike(draw)]
        elif self._style is Style.KINDS:
            pods = [*of_kinds(draw)]
        elif self._lists:
            pods += own_sizes(draw)
        elif draw.random() < 0.6:
            pods += wide_pods(draw)
        if self._style is Style.ANY and draw.random() < 0.3:
            # They use each other's volumes, which each batch has to know.
            pods += [with_claim(draw, number) for number in range(6)]
        if draw.random() < 0.5:
            ranks = draw.choices((0, 0, 10, 100), k=len(pods))
            pods = [(who, replace(f, priority=n)) for (who, f), n in zip(pods, ranks, strict=True)]
        self._facts = dict(pods)
        for number in range(draw.choice((0, 4, 12)) if pods else 0):
            who, facts = pods[draw.randrange(min(3, len(pods)))]
            again = PodIdentity(f"{who.uid}-{number}", who.namespace, f"{who.name}-{number}")
            # Some of one shape, which differ in their requests and in their feasible nodes.
            by = draw.choice((0, 0, 0, 50, 400))
            self._facts[again] = larger(facts, by) if by else facts
        self._attempts = dict.fromkeys(self._facts, 0)

    def step(self):
        kinds = LISTING if self._lists else KINDS
        (kind,) = self._draw.choices([*kinds], [*kinds.values()])
        getattr(self, f"_{kind}")()

    # The cluster, and the scheduler's copy of it.

    def _send(self, deltas):
        self._late += deltas

    def _catch_up(self):
        """Apply all changes, as a scheduler's read does, and drop attempts that failed."""
        held, judge, pod_classes = self._held, self._judge, self._classes.pod_class
        arrivals = {}
        for delta in self._late:
            _, kind, name, uid, pod, node = delta
            pod_class = None if pod is None else pod_classes(pod)
            key = self._cache.key_of(uid) if kind is DeltaKind.ADD_POD else ""
            hear(held, delta, pod_class, key, self._arrivals)
            if kind is DeltaKind.ADD_NODE:
                self._parts[name] = self._arrivals % 3
                arrivals[name] = self._arrivals
                self._arrivals += 1
            if kind in (DeltaKind.ADD_NODE, DeltaKind.UPDATE_NODE):
                judge.node_comes(node)
            elif kind is DeltaKind.REMOVE_NODE:
                judge.node_removed(name)
        self._workers.apply(self._late, arrivals)
        self._late, self._is_owed = [], False
        held.tentative.undo_unconfirmed()
        held.table.validate()
        known = self._cache.placements
        placed = {
            uid: (known.facts_of(uid), self._cache.node_of(uid), self._cache.key_of(uid))
            for uid in self._cache.pods.present
        }
        named = {uid: one for uid, one in known.nominated.items() if one[0] in known.nodes}
        judge.see(placed, named)
        self._compare_table()

    def _compare_table(self):
        """The table has the same counts as the cache."""
        table, known = self._held.table, self._cache.placements
        here = {
            resident.uid: name
            for name in table.node_names()
            for resident in table.residents.on(name)
        }
        there = {
            uid: self._cache.node_of(uid)
            for uid in self._cache.pods.present
            if self._cache.node_of(uid) in known.nodes
        }
        if here != there or set(table.node_names()) != set(known.nodes):
            self._judge.problems.append(f"the table holds {here}, not {there}")
        named = nominations_of(table, known.nodes)
        if named != (wanted := nominations_at(self._cache, self._classes)):
            self._judge.problems.append(f"nominated are {named}, not {wanted}")

    def _host(self):
        return self._draw.choice(self._hosts)

    def _change(self):
        facts = self._host()
        if facts.name in self._cache.placements.nodes:
            taints = self._draw.choice(((), (taint("spot", "", "NoSchedule"),)))
            labels = self._draw.choice((facts.labels, (*facts.labels, ("disk", "ssd"))))
            changed = replace(facts, taints=taints, labels=labels)
            self._send(self._cache.update_node(changed))

    def _go(self):
        facts = self._host()
        if facts.name in self._cache.placements.nodes and len(self._cache.placements.nodes) > 1:
            self._send(self._cache.remove_node(facts.name))

    def _come(self):
        facts = self._host()
        if facts.name not in self._cache.placements.nodes:
            self._send(self._cache.add_node(facts))

    def _run(self):
        """Add a pod of another scheduler, perhaps of one that is also decided here."""
        who, facts = self._draw.choice(list(self._facts.items()))
        if facts.volumes:
            return
        uid = self._draw.choice((f"other-{self._number}", who.uid))
        self._number += 1
        if self._cache.node_of(uid) is None and self.core.state_of(uid) not in ("binding",):
            key = f"{who.namespace}/{uid}"
            item = PodOnNode(uid, key, without_nomination(facts), self._host().name)
            self._send(self._cache.confirm([item]))

    def _some_running(self):
        uids = [
            each for each in self._cache.pods.present if self._cache.state_of(each).value == "added"
        ]
        return self._draw.choice(uids) if uids else None

    def _leave(self):
        if (uid := self._some_running()) is not None:
            self._send(self._cache.remove_pods([uid]))
            self.core.deleted([uid])
            self._forget(uid)

    def _update(self):
        if (uid := self._some_running()) is not None:
            facts = self._cache.facts_of(uid)
            labels = self._draw.choice((facts.labels, (("app", "other"),)))
            node = self._cache.node_of(uid)
            self._send(self._cache.update_pod(uid, replace(facts, labels=labels), node))

    def _nominate(self):
        """Add or remove nominations, of these pods or of another scheduler's."""
        # A kernel decides only where no pod is nominated.
        most = self._draw.choice((1, 6)) if self._is_narrowed else 1
        for who in self._draw.sample([*self._facts], min(len(self._facts), most)):
            facts, uid = self._facts[who], who.uid
            name = self._draw.choice((self._host().name, ""))
            if self._is_free(who) and self._draw.random() < 0.7:
                self._facts[who] = replace(facts, nominated_node_name=name)
            else:
                uid = f"nominated-{self._draw.randrange(3)}"
            self._send(self._cache.nominate(uid, name, without_nomination(facts)))

    def _turn(self):
        if self._bounds is not None:
            self._bounds.own = self._draw.choice(((0,), (1, 2), (0, 1, 2)))

    def _mood(self):
        """Change a plugin's state, or change it back."""
        IsMoody.mood = self._draw.choice((0, 1, 2))

    def _score(self):
        """Workers compute results of classes for the next batch."""
        who, facts = self._draw.choice([*self._facts.items()])
        profile = self._profiles[facts.scheduler_name]
        pod_class = self._classes.pod_class(facts)
        given = self._workers.asked(profile, pod_class, self._held)
        if given is not None:
            self._cycle.store_worker_results(profile.signature_of(pod_class, who.uid), given)

    def _verify(self):
        """Verify pods as the binder would, on the scheduler's state."""
        count = self._draw.choice((2, 3, 4, 20))
        pods = self._draw.choices([*self._facts.values()], k=count)
        if self._draw.random() < 0.5:
            pods = pods[:1] * len(pods)
        pods = [without_nomination(each) for each in pods]
        hosts = self._held.table.node_names()
        if self._draw.random() < 0.6:
            # Each pod fits its node by itself, so that they only conflict with each other.
            hosts = [name for name in hosts if self._takes_all(pods, name)] or hosts
        names = self._draw.choices(hosts, k=count)
        self._verifier.verify_prefix(pods, names)
        for each, name in zip(pods, names, strict=True):
            self._verifier.verify(each, name)

    def _takes_all(self, pods, name):
        """Whether a node accepts each of some pods by itself."""
        return all(self._verifier.verify(each, name).is_success for each in dict.fromkeys(pods))

    # A batch and its results.

    def _lease(self):
        free = [who for who in self._facts if self._is_free(who) or self._is_to_be_moved(who)]
        pods = []
        for who in self._draw.sample(free, min(len(free), self._draw.randint(1, 8))):
            self._attempts[who] += 1
            pod_class = self._classes.pod_class(self._facts[who])
            signature = self._profiles[pod_class.facts.scheduler_name].signature_of(
                pod_class, who.uid
            )
            key = f"{who.namespace}/{who.name}"
            draw = self._draw.randint(1, 2)
            pods.append(PodInCycle(who.uid, key, pod_class, signature, self._attempts[who], draw))
        self._lease_id += 1
        self.core.lease(self._lease_id, pods)

    def _is_free(self, who):
        return self._cache.node_of(who.uid) is None and self.core.state_of(who.uid) in OVER

    def _is_to_be_moved(self, who):
        """Whether a pod is decided though it is on a node; its claims would be assumed twice."""
        is_over = self.core.state_of(who.uid) in OVER
        return is_over and not self._facts[who].volumes and self._draw.random() < 0.2

    def _run_of(self, batch, pods):
        """The pods that are decided in one run; for the first other pod the reason is counted."""
        coverage, cycle = self._coverage, self._cycle
        kernel, others = coverage.by_kernel, coverage.by_reference.total()
        others += coverage.stops.total()
        # The counts exclude pods that depend on placements of the reference path.
        is_lone = isinstance(batch, NominatedBatch)
        is_changed = not is_lone and batch._is_out_of_date_for_kernel(pods[0])
        run = batch.decide_by_kernel(pods)
        kernel = coverage.by_kernel - kernel
        others = coverage.by_reference.total() + coverage.stops.total() - others
        is_outside = cycle.searches_nodes(pods[0]) and not cycle.samples(pods[0])
        is_counted = cycle.compiled_kernel is not None and not is_outside
        least = int(is_counted and not run and not batch._has_ended and not is_changed)
        if kernel != len(run) or not least <= others <= is_counted:
            text = f"{kernel} and {others} are counted of {len(run)} pods"
            self._judge.problems.append(text)
        if self._coverages.wrongly_left_out(pods[0]):
            self._judge.problems.append(f"{pods[0].key} is left out, and nothing fails it")
        return run

    def _decide(self):
        self._lease()
        pods = self.core.undecided(16)
        if not pods:
            return
        if self._is_owed or self._draw.random() < self._reads:
            self._catch_up()
        cycle, judge = self._cycle, self._judge
        wanted, pods = self._lengths.of(pods), cycle.next_batch(pods)
        if len(pods) != wanted:
            judge.problems.append(f"{len(pods)} are decided at once, not {wanted}")
        wanted, found = (
            self._lengths.missing_classes(pods),
            [each.signature for each in cycle.missing_classes(pods)],
        )
        if wanted is not None and found != wanted:
            judge.problems.append(f"workers are asked about {found}, not {wanted}")
        self._lengths.begins(pods)
        decided = []

        def decide(batch):
            may_list = cycle.compiled_kernel is not None and self._bounds is None
            if may_list and isinstance(batch, ContinuingBatch):
                self._workers.have_listed(
                    batch, pods, self._held, cycle.compiled_kernel, self._profiles
                )
            while len(decided) < len(pods):
                coming = pods[len(decided) :]
                if run := self._run_of(batch, coming):
                    decided.extend(run)
                    continue
                decision = batch.decide(coming[0])
                if decision is None:
                    break
                if self._bounds is not None and decision.diagnosis is not None:
                    decided.append(decision)
                    continue
                profile = self._profiles[decision.pod.pod_class.facts.scheduler_name]
                decision, has_tried = yield from after_failure(
                    decision, profile, self._tie_break, batch, cycle.extenders
                )
                decided.append(decision)
                if has_tried:
                    break
            return decided, len(decided)

        run_now(with_locked_table(self._held, decide_batch(self._held, cycle, pods, decide)))
        if not decided:
            judge.problems.append(f"nothing is decided of {pods[0].key}")
        cycle.record_length(len(pods), len(decided))
        self._lengths.record_length(len(pods), len(decided))
        judge.begin(pods)
        effects = []
        for each in decided:
            if self._bounds is not None and each.diagnosis is not None:
                judge.passes_on(each)
                effects += self.core.deleted([each.pod.uid])
            else:
                effects += (commands := self.core.decided([each]))
                judge.decided([each], commands)
        judge.end(decided)
        self._perform(effects)

    def _perform(self, effects):
        effects = list(effects)
        while effects:
            effect = effects.pop(0)
            if isinstance(effect, Assume):
                effects += self._assume(effect.attempts)
            elif isinstance(effect, Bind):
                effects += self._bind(effect.attempts)
            elif isinstance(effect, Forget):
                for each in effect.attempts:
                    self._send(self._cache.forget([(each.uid, each.token)]).deltas)
                    self._forget(each.uid)
            elif isinstance(effect, Confirm):
                for each in effect.attempts:
                    self._volumes.confirm(each.uid)
                    self._judge.keep(each.uid)
                    self._cache.confirm_assumed([each.uid])
            elif isinstance(effect, Nominate):
                effects += self._carry_out(effect)
            elif isinstance(effect, RequeuePods):
                for item in effect.items:
                    self._back(item)

    def _forget(self, uid):
        self._volumes.forget(uid)
        self._judge.release(uid)
        # The claims of others may be free, which must be visible at once.
        self._is_owed = True

    def _assume(self, attempts):
        accepted, refused = [], []
        for each in attempts:
            node = self._cache.placements.nodes.get(each.node_name)
            if node is None and each.facts.volumes:
                self._judge.release(each.uid)
                refused.append((each.token, unschedulable("its node is gone")))
                continue
            if not each.facts.volumes and self._draw.random() < self._refused:
                refused.append((each.token, unschedulable("not now")))
                continue
            facts = without_nomination(each.facts)
            item = Assumption(each.uid, each.key, facts, each.node_name, each.token)
            answer = self._cache.assume([item], 0.0)
            if answer.refused:
                refused.append((each.token, unschedulable("it is there")))
                self._judge.release(each.uid)
                continue
            self._send(answer.deltas)
            accepted.append(each.token)
            if each.facts.volumes:
                self._is_owed = True
                self._volumes.assume(each.uid, each.facts, node)
        return self.core.assumed(accepted, refused, 0.0)

    def _bind(self, attempts):
        answers = []
        for each in attempts:
            bound = self._draw.random() < 0.85
            outcome = BindOutcome.BOUND if bound else BindOutcome.CONFLICT
            answers.append(BindResult(each.token, outcome, each.node_name if bound else ""))
        return self.core.bind_answered(answers)

    def _carry_out(self, effect):
        effects, self._is_owed = [], True
        for each in effect.nominations:
            for victim in each.victims:
                if self._cache.node_of(victim.uid) is not None:
                    self._send(self._cache.remove_pods([victim.uid]))
                    effects += self.core.deleted([victim.uid])
                    self._forget(victim.uid)
            deltas = self._cache.nominate(
                each.uid,
                each.node_name,
                without_nomination(each.facts),
                preempts=bool(each.victims),
            )
            self._send(deltas)
        return effects

    def _back(self, item):
        if item.nominated_node is None:
            return
        who = next(each for each in self._facts if each.uid == item.uid)
        name = item.nominated_node
        self._facts[who] = replace(self._facts[who], nominated_node_name=name)
