"""A judge: decides every pod again, naively, and compares the result with the scheduler's decision.

The judge follows one scheduler. It keeps a node table of its own, built from the scenario's events
and the effects of the scheduler's core, and for each decision runs every plugin over every node
from scratch: no batches, no state kept from one pod to the next. Of the code under test it uses
only the plugins and the framework, nothing of `roadstead/cycle`.
"""

import re
from dataclasses import replace
from functools import partial

import numpy as np

from roadstead.attempts.commands import Confirm, Forget, Nominate, ReportKind, SendReports
from roadstead.framework.evaluation import EXCLUDED
from roadstead.framework.post_filter import dry_run_size, run_post_filter
from roadstead.framework.row_overlay import PASSED
from roadstead.framework.tie_break import TieBreak, in_order
from roadstead.framework.victims import DryRun
from roadstead.nodes.pod_class import PodClasses
from roadstead.nodes.table import NodeTable
from roadstead.preemption.dry_run import dry_run
from roadstead.protocol.status import Code, unresolvable
from roadstead.run import build_profiles
from roadstead.storage import AssumedClaims
from tests.simulation.bystanders import Bystanders, identity_of
from tests.simulation.naive import Left, Naive, Verdict, failed, shown_status
from tests.simulation.sampling import Sampling

IN_FLIGHT = re.compile(r"resource claim (\S+) is in the process of being allocated")


class Judge:
    """members: the gangs' pods as the scheduler has them. bounds: the scheduler's own part of the
    nodes. opinions: the extender's answers, if there is an extender.

    problems: wrong decisions.
    """

    asked_every = 5
    """The judge also runs the bystanders for one pod in so many."""

    def __init__(self, plan, members, bounds=None, opinions=None):
        self._classes = PodClasses()
        self._profiles = build_profiles(plan, self._classes, members=members)
        if bounds is not None:
            self._profiles = {n: each.with_filter(bounds) for n, each in self._profiles.items()}
        self._table = NodeTable(self._classes)
        self._tie_break = TieBreak(plan.settings.tie_break, plan.settings.seed)
        self._naive = Naive(self._table, self._tie_break)
        self._volumes = AssumedClaims(next(iter(self._profiles.values())).storage)
        self._sampling, self._opinions = Sampling(plan), opinions
        if opinions is None:
            self._sampling.is_content = {n for n, each in self._profiles.items() if not each.score}
        self._bystanders = Bystanders(plan, self._tie_break, members, bounds, opinions)
        self._changes = []
        self._placed = {}
        self._nominated = {}
        self._forgotten = set()
        self._begun = []
        self.judged = 0
        self.problems = []

    def node_comes(self, facts):
        self._sampling.node_comes(facts)
        if facts.name in self._table.node_names():
            self._table.update_node(facts)
            return
        self._table.add_node(facts)
        for uid, (pod_class, name, key) in self._placed.items():
            if name == facts.name:
                self._table.add_pod(name, pod_class, uid=uid, key=key)

    def node_removed(self, name):
        self._sampling.node_removed(name)
        if name in self._table.node_names():
            self._table.remove_node(name)

    def pod_goes(self, uid):
        """Remove a pod that was deleted or evicted; its claims of devices end with it."""
        self._lift(uid)
        self._changes += self._volumes.release((uid,))

    def _lift(self, uid):
        """Remove a pod from its node, and undo its bindings that are not committed."""
        self._forgotten.discard(uid)
        self._withdraw(uid)
        pod_class, name, _ = self._placed.pop(uid, (None, None, None))
        if pod_class is None:
            return
        if name in self._table.node_names():
            self._table.remove_pod(name, pod_class, uid=uid)
        self._changes += self._volumes.forget(uid)

    def pod_changes(self, uid, facts):
        """Change the facts of a pod on a node."""
        before, name, key = self._placed.get(uid, (None, None, None))
        if before is None or before.facts == facts:
            return
        pod_class = self._classes.pod_class(facts)
        # It becomes the last pod of its node, as on the table: victims are tried in that order.
        del self._placed[uid]
        self._placed[uid] = pod_class, name, key
        if name in self._table.node_names():
            self._table.remove_pod(name, before, uid=uid)
            self._table.add_pod(name, pod_class, uid=uid, key=key)

    def nominate(self, uid, facts, node_name, victims):
        """Nominate a pod to a node, or remove its nomination; its victims are removed."""
        self._withdraw(uid)
        for victim in victims:
            self.pod_goes(victim)
        if not node_name:
            return
        if victims:
            for other, (pod_class, name) in list(self._nominated.items()):
                if name == node_name and pod_class.facts.priority < facts.priority:
                    self._withdraw(other)
        pod_class = self._classes.pod_class(facts)
        self._nominated[uid] = pod_class, node_name
        self._table.nominate(node_name, pod_class)

    def _withdraw(self, uid):
        pod_class, name = self._nominated.pop(uid, (None, None))
        if pod_class is not None:
            self._table.withdraw(name, pod_class)

    def begins(self, pods, on_table):
        """Begin a batch. The table may still count pods that the core forgot while the cache has
        not answered. on_table: UIDs of the pods that the table counts.

        Several batches may begin before the decisions of the first are known.
        """
        self._begun.append(({pod.uid for pod in pods}, {*self._forgotten} - {*on_table}))

    def _begin_up_to(self, last):
        """Apply batches up to the last one with a pod, or all."""
        with_pod = [place for place, (uids, _) in enumerate(self._begun) if last in uids]
        count = len(self._begun) if last is None else max(with_pod, default=-1) + 1
        begun, self._begun = self._begun[:count], self._begun[count:]
        for again, off_table in begun:
            self._take_back(again, off_table)

    def _take_back(self, again, off_table):
        for uid in self._forgotten & (again | off_table):
            self._forgotten.discard(uid)
            self._lift(uid)

    def decided(self, decisions, effects):
        """Compare decisions with the judge's own, in order; then apply the scheduler's decisions.

        effects: of the scheduler's core; they contain the reports on pods without a node.
        """
        effects_of_call = _Reported(effects)
        for decision in decisions:
            self._begin_up_to(decision.pod.uid)
            self._judge(decision, effects_of_call.of(decision))
            # Later decisions assume that this one succeeds.
            for each in effects_of_call.nominations(decision):
                self._heed_nomination(each)
        self._begin_up_to(None)
        self.heed([each for each in effects if not isinstance(each, Nominate)])

    def _judge(self, decision, chosen):
        self.judged += 1
        pod = decision.pod
        facts = pod.pod_class.facts
        start = self._sampling.start
        wanted = self._decide(pod, facts)
        if facts.pod_group is not None and wanted.node_name is None and chosen is not None:
            # A gang's message depends on which of its pods wait at the scheduler.
            wanted = replace(wanted, message=chosen.message, nominated=chosen.nominated)
        if self._is_early(chosen):
            return
        if not self._is_same(chosen, wanted):
            text = f"decision {self.judged}: {pod.key} (attempt {pod.attempt}): {chosen}"
            self.problems.append(f"{text}, the judge expects {wanted}")
        elif self._may_ask(facts):
            self._ask_bystanders(pod, facts, wanted, start)
        elif (chosen := decision.best) and chosen != self._best(wanted):
            self.problems.append(f"{pod.key}: the best are {chosen}, not {self._best(wanted)}")
        if decision.node_name is not None:
            self._place(pod, facts, decision.node_name)

    def _may_ask(self, facts):
        """Whether to run the bystanders, which build the cluster again with the nodes in order."""
        is_due = self.judged % self.asked_every == 0 and facts.pod_group is None
        return is_due and self._sampling.names() is not None

    def _is_early(self, chosen):
        """Whether a pod was refused because a claim was in flight when its batch began; the pod
        that reserved it was confirmed since then.
        """
        found = None if chosen is None else IN_FLIGHT.search(chosen.message)
        claims = self._volumes.storage.devices.claims
        return bool(found) and found[1] in claims and not claims[found[1]].is_in_flight

    def _is_same(self, chosen, wanted):
        return chosen == wanted

    def _best(self, wanted):
        """A single node is the best even where scoring it fails."""
        return tuple(sorted(self._view["best"] or (wanted.node_name,), key=str.encode))

    def _ask_bystanders(self, pod, facts, wanted, start):
        names = set(self._table.node_names())
        world = (
            [self._table.facts(self._table.row_of(name)) for name in self._sampling.names()],
            [
                (identity_of(uid, key), pod_class.facts, name)
                for uid, (pod_class, name, key) in self._placed.items()
                if name in names
            ],
            [(pod_class.facts, name) for pod_class, name in self._nominated.values()],
            self._changes,
        )
        view = self._view | {"node": wanted.node_name, "message": wanted.message}
        decided = wanted.node_name, wanted.feasible, wanted.total, wanted.best
        decided += wanted.nominated, len(wanted.victims)
        self.problems += self._bystanders.ask(pod, facts, world, view, decided, start)

    def heed(self, effects):
        """Apply the forgotten attempts and nominations of the scheduler's core."""
        for effect in effects:
            if isinstance(effect, Forget):
                self._forgotten.update(attempt.uid for attempt in effect.attempts)
            elif isinstance(effect, Confirm):
                for attempt in effect.attempts:
                    # The pod's claims stay bound, and those of devices name it.
                    self._changes += self._volumes.confirm(attempt.uid)
            elif isinstance(effect, Nominate):
                for each in effect.nominations:
                    self._heed_nomination(each)

    def _heed_nomination(self, each):
        victims = [victim.uid for victim in each.victims]
        self.nominate(each.uid, each.facts, each.node_name, victims)
        if each.deallocates:
            self._changes += self._volumes.deallocate([(each.deallocates, each.uid)])

    def _place(self, pod, facts, node_name):
        self._withdraw(pod.uid)
        pod_class = self._classes.pod_class(facts)
        node = self._table.facts(self._table.row_of(node_name))
        if self._profiles[facts.scheduler_name].binds_volumes:
            reserved = self._volumes.assume(pod.uid, facts, node)
            self._changes += () if reserved is None else reserved.changes
        self._placed[pod.uid] = pod_class, node_name, pod.key
        self._table.add_pod(node_name, pod_class, uid=pod.uid, key=pod.key)

    def _decide(self, pod, facts):
        profile = self._profiles[facts.scheduler_name]
        self._sampling.look()
        is_narrowed = self._sampling.shares or self._opinions is not None
        narrow = partial(self._left, pod, facts) if is_narrowed else None
        outside = self._opinions is not None
        pod_class = self._classes.pod_class(facts)
        found = self._naive.decide(profile, pod_class, pod, narrow, asks_outside=outside)
        self._view = found.view
        if found.verdict is not None:
            return found.verdict
        return self._failed(profile, pod, facts, found)

    def _left(self, pod, facts, evaluation, rows):
        """The feasible rows that a search and an extender leave; scoring sees no others."""
        names, statuses = self._table.names, evaluation.statuses
        feasible = {names[row] for row in rows}
        failing = {
            name: statuses[code - 1]
            for name, code in zip(names, evaluation.codes.tolist(), strict=True)
            if code > 0 and statuses[code - 1].code is Code.ERROR
        }
        nominated, refused, known_nodes = facts.nominated_node_name, {}, set()
        if nominated in feasible:
            # A nominated node that accepts the pod is checked first, and no search begins.
            left, refused = self._asked(pod, [nominated]) or ([], {})
            if left:
                return self._narrowed(evaluation, Left([self._table.row_of(nominated)]), {}, None)
            known_nodes = set(refused)
        elif nominated in names and nominated not in failing:
            known_nodes = {nominated}
        named = evaluation.pre_filter.node_names
        met, seen, failed = self._sampling.search(
            facts.scheduler_name, feasible, failing, named, known_nodes
        )
        if failed is not None:
            return self._narrowed(evaluation, Left([], failing[failed]), {}, None)
        answer = self._asked(pod, met)
        if answer is None:
            return self._narrowed(evaluation, Left([], self._opinions.failure()), {}, None)
        left, more = answer
        refused = {name: why for name, why in {**refused, **more}.items() if name not in left}
        added = {} if self._opinions is None else self._opinions.added(pod.uid, left)
        rows = [row for row in rows if names[row] in left]
        unknown_nodes = tuple(why for name, why in refused.items() if name not in names)
        found = Left(rows, None, added, len(left) != len(met), unknown_nodes)
        return self._narrowed(evaluation, found, refused, seen | known_nodes)

    def _asked(self, pod, names):
        """The nodes that the extender leaves and the reasons of the others; None where it fails."""
        if self._opinions is None or not names:
            return names, {}
        return self._opinions.filter(pod.uid, names)

    def _narrowed(self, evaluation, left, refused, seen):
        """The evaluation after node search and extender. seen: names that a search reached, or
        None.

        Upstream gives all nodes without a status of their own the same status: excluded by
        PreFilter, if it excluded any (`SetAbsentNodesStatus`).
        """
        names, codes = self._table.names, evaluation.codes.copy()
        is_named = evaluation.pre_filter.node_names is not None
        unseen = EXCLUDED if is_named else evaluation.intern(unresolvable())
        for row, name in enumerate(names):
            is_seen = seen is None or name in seen
            if evaluation.feasible[row] or (not is_seen and codes[row] >= 0):
                codes[row] = unseen
            if name in refused:
                codes[row] = evaluation.intern(refused[name])
        codes[left.rows] = PASSED
        evaluation.codes = codes
        evaluation.feasible = np.isin(np.arange(len(names)), left.rows)
        return left

    def _failed(self, profile, pod, facts, found):
        diagnosis, names = found.diagnosis, set(self._table.node_names())
        for running, name, _ in self._placed.values():
            if name in names:
                diagnosis.record_priority(running.facts.priority)
        if not (profile.post_filter and diagnosis.node_count):
            return failed(diagnosis, message=diagnosis.message(""), nominated="")
        draw = None
        if self._tie_break.kind != "first":
            draw = self._tie_break.pod_hash(pod.key, pod.tie_break_number)
        number, tried = dry_run_size(profile, facts, diagnosis), None
        if number is not None:
            ask = DryRun(number, draw)
            tried = self._kept(pod, dry_run(found.evaluation, ask, profile.budgets))

        def pick(names):
            return names[in_order(names, draw)[0]]

        result = run_post_filter(profile, facts, diagnosis, tried, pick)
        found.view["post_filter"] = _shown(result)
        return _verdict(diagnosis, result)

    def _kept(self, pod, tried):
        """The candidates that the extender keeps."""
        opinions = self._opinions
        if opinions is None or not opinions.preempts or not tried.candidates:
            return tried
        kept = [e for e in tried.candidates if opinions.keeps(pod.uid, e.node_name)]
        return replace(tried, candidates=tuple(kept), refused_by_extenders=not kept)


def _shown(result):
    """The preemption part of the expected explanation."""
    is_success = result.status.is_success
    status = {"code": result.status.code.upstream_name}
    if not is_success:
        status = shown_status(result.status)
    candidates = sorted(result.candidates, key=lambda each: each.node_name.encode())
    return {
        "status": status,
        "nominated": result.nominated_node,
        "acceptable": sorted(result.acceptable, key=str.encode) if is_success else [],
        "exhaustive": result.exhaustive,
        "candidates": [
            (each.node_name, [victim.key for victim in each.victims], each.violations)
            for each in (candidates if is_success else ())
        ],
    }


def _verdict(diagnosis, result):
    suffix = "" if result.status.is_success else result.status.message
    victims = () if result.chosen is None else result.chosen.victims
    uids = tuple(sorted(each.uid for each in victims))
    nominated = result.nominated_node
    return failed(diagnosis, message=diagnosis.message(suffix), nominated=nominated, victims=uids)


class _Reported:
    """Reports on the pods of a batch, by UID."""

    def __init__(self, effects):
        self._reports, self._victims, self._nominations = {}, {}, []
        for effect in effects:
            if isinstance(effect, SendReports):
                self._reports |= {each.uid: each for each in effect.reports}
            elif isinstance(effect, Nominate):
                self._nominations += effect.nominations
                for each in effect.nominations:
                    self._victims[each.uid] = tuple(sorted(v.uid for v in each.victims))

    def nominations(self, decision):
        return [each for each in self._nominations if each.uid == decision.pod.uid]

    def of(self, decision):
        """The verdict on one pod; None where the core ignored its decision."""
        uid = decision.pod.uid
        feasible, total, best = decision.feasible, decision.total, decision.best_size
        if decision.node_name is not None:
            return Verdict(decision.node_name, feasible=feasible, total=total, best=best)
        report = self._reports.get(uid)
        if report is None:
            return None
        if report.kind is ReportKind.FAILED:
            return Verdict(None, error=report.message, feasible=feasible)
        return Verdict(
            *(None, report.message, report.nominated_node, self._victims.get(uid, ())),
            reasons=report.reasons,
            plugins=report.plugins,
        )
