"""Workers of a scheduler that is called at random: their tables are behind the scheduler's, they
evaluate classes, and their merged answers equal the plugins' results on the scheduler's table.
"""

from collections import Counter

import numpy as np

from roadstead.cycle.merged_lists import best_rows
from roadstead.cycle.messages import RankRequest, ScoreAnswer
from roadstead.cycle.ranker import Ranker
from roadstead.cycle.scored_parts import ScoredParts
from roadstead.cycle.scorer import Scorer
from roadstead.facts.wire import encode_facts
from roadstead.framework.cycle_state import CycleState
from roadstead.framework.guarded import PluginFailure
from roadstead.framework.worker_results import FILTER, SCORE, worker_calls
from roadstead.nodes.pod_class import PodClasses
from roadstead.nodes.table import NodeTable
from roadstead.placements import DeltaKind
from roadstead.run import build_profiles
from tests.simulation.drawn_plans import PLAIN
from tests.simulation.ramble_lists import Lists


class Workers:
    """late: for each worker, the changes that it does not have. problems: wrong answers."""

    def __init__(self, plan, table, draw):
        self._table, self._draw, self.problems = table, draw, []
        count = draw.randint(1, 3)
        self._parts = ScoredParts(table, count)
        self._tables, self._scorers, self._rankers = [], [], []
        for _ in range(count):
            classes = PodClasses()
            table, profiles = NodeTable(classes), build_profiles(plan, classes)
            self._tables.append(table)
            self._scorers.append(Scorer(table, profiles))
            self._rankers.append(Ranker(self._scorers[-1].by_arrival, table, profiles))
        self._late = [[] for _ in range(count)]
        self._seen, self._tie_break = set(), plan.settings.tie_break

    def apply(self, deltas, arrivals):
        """Send changes of the cluster. arrivals: of added nodes."""
        for worker, late in enumerate(self._late):
            late += [(delta, arrivals.get(delta.node_name, 0)) for delta in deltas]
            if self._draw.random() < 0.6:
                self._apply(worker, late)
                late.clear()

    def _apply(self, worker, changes):
        table, count = self._tables[worker], len(self._tables)
        for (_, kind, name, uid, pod, node), arrival in changes:
            if kind is DeltaKind.ADD_NODE and arrival % count == worker:
                table.add_node(node, arrival)
            if not table.has_node(name):
                continue
            pod_class = None if pod is None else table.classes.pod_class(pod)
            if kind is DeltaKind.UPDATE_NODE:
                table.update_node(node)
            elif kind is DeltaKind.REMOVE_NODE:
                table.remove_node(name)
            elif kind is DeltaKind.ADD_POD:
                table.add_pod(name, pod_class, uid=uid)
            elif kind is DeltaKind.REMOVE_POD:
                table.remove_pod(name, pod_class, uid=uid)

    def asked(self, profile, pod_class, held):
        """The results of a class; None where no answer is usable."""
        answers, touched, asked = {}, {}, self._parts.rows.with_rows()
        holders = {int(each) % len(self._tables) for each in self._table.arrivals}
        if set(asked) != holders:
            self.problems.append(f"workers {asked} are asked, {holders} hold rows")
        for worker in asked:
            if self._draw.random() < 0.15:
                continue
            scorer = self._scorers[worker]
            columns = scorer.columns(encode_facts(pod_class.facts), len(self._table))
            names = {delta.node_name for delta, _ in self._late[worker]} | held.tentative.nodes()
            here = {name for name in names if self._tables[worker].has_node(name)}
            ahead = bool(self._draw.randrange(2))
            # Either side may report that a row changed.
            arrivals = scorer.arrivals_of(here if ahead else set()).tobytes()
            rows = len(self._tables[worker])
            answers[worker] = ScoreAnswer(0, rows, scorer.digest, arrivals, (columns,))
            touched[worker] = names - here if ahead else names
        found = self._parts.merge_answers(answers, touched, 1)
        if found is not None:
            self._compare(profile, pod_class, found[0], answers.values())
        elif any(not self._late[worker] for worker in answers):
            self.problems.append("answers of up-to-date workers are not used")
        return found and found[0]

    def have_listed(self, batch, pods, held, compiled_kernel, profiles):
        """Give a batch the lists of those workers that have all changes."""
        new, draw = batch.unlisted(pods), self._draw
        if missed := self._plain_among(batch, pods, profiles) - {pod.uid for pod in new}:
            self.problems.append(f"{missed} could be listed, and are not")
        self._seen.update(each.signature for each in pods)
        if not new:
            return
        draws, most = batch.tie_break_hashes(new), draw.randint(1, 4)
        apart = self._table.rows_of(held.tentative.nodes())
        arrivals = self._table.arrivals[apart].astype(np.int64).tobytes()
        ask = RankRequest(
            0, arrivals, tuple(encode_facts(p.pod_class.facts) for p in new), draws.tobytes(), most
        )
        answers, left = {}, {*held.tentative.nodes()}
        for worker in self._parts.rows.with_rows():
            if self._late[worker] or draw.random() < 0.15:
                continue
            table = self._tables[worker]
            names = [name for name in table.node_names() if draw.random() < 0.1]
            left.update(names)
            touched = table.arrivals[table.rows_of(names)].astype(np.int64)
            answers[worker] = self._rankers[worker].rank(ask, compiled_kernel, touched)
        signatures = [each.signature for each in new]
        rows = self._parts.rows
        best = best_rows(rows, answers, signatures, draws, most, apart)
        wanted = Lists(self._table, rows, profiles, most)
        self.problems += wanted.problems_of(best, new, draws, answers, left)
        if best is not None:
            batch.use_lists(best, len(pods))

    def _plain_among(self, batch, pods, profiles):
        """UIDs of pods of sizes of their own that no kernel has evaluated, where a kernel ranks, no
        pod is nominated, and no node has a preference of its own.
        """
        hosts = [self._table.facts(row) for row in range(len(self._table))]
        differ = any(each.effect == "PreferNoSchedule" for host in hosts for each in host.taints)
        if differ or batch._name_best or self._table.nominations or self._tie_break != "random":
            return set()
        counts = Counter(pod.signature for pod in pods)
        return {
            pod.uid
            for pod in pods
            if pod.uid.startswith(PLAIN) and pod.signature not in self._seen
            if counts[pod.signature] == 1
            if not pod.pod_class.facts.nominated_node_name
            if not _is_asked_outside(profiles[pod.pod_class.facts.scheduler_name])
        }

    def _compare(self, profile, pod_class, given, answers):
        answered_by_all = set.intersection(
            *({(each.plugin, each.point) for each in answer.classes[0]} for answer in answers)
        )
        answered_by_any = {
            (each.plugin, each.point) for answer in answers for each in answer.classes[0]
        }
        state = CycleState(len(self._table))
        silent = _silent(profile, pod_class, state, self._table)
        if unasked := answered_by_any & silent:
            self.problems.append(f"{unasked} did not prepare for it, and was asked by a worker")
        for plugin, point in worker_calls(profile):
            try:
                if point == FILTER:
                    merged = _statuses(given.filter(plugin, state, pod_class, self._table))
                    wanted = _statuses(plugin.filter(state, pod_class, self._table))
                else:
                    merged = given.score(plugin, state, pod_class, self._table)
                    wanted = plugin.score(state, pod_class, self._table)
            except PluginFailure:
                continue
            if (plugin.name, point) not in answered_by_any | silent:
                self.problems.append(f"no worker answers for {plugin.name} at {point}")
            if merged is None:
                if (plugin.name, point) in answered_by_all:
                    self.problems.append(
                        f"{plugin.name} was asked of all workers, and is asked again"
                    )
                continue
            rows = len(self._table)
            merged, wanted = np.broadcast_to(merged, rows), np.broadcast_to(wanted, rows)
            if merged.tolist() != wanted.tolist():
                self.problems.append(f"{plugin.name} returns {wanted}, workers returned {merged}")


def _silent(profile, pod_class, state, table):
    """Users' plugins that are not called: their preparation returns Skip, or fails."""
    found = set()
    for point, plugins in ((FILTER, profile.pre_filter), (SCORE, profile.pre_score)):
        for plugin in (each for each in plugins if each.is_guarded):
            if point == FILTER:
                status = plugin.pre_filter(state, pod_class, table).status
            else:
                status = plugin.pre_score(state, pod_class, table, lambda: table.pod_count >= 0)
            if status.is_skip:
                found.add((plugin.name, point))
            elif not status.is_success:
                found |= {(plugin.name, FILTER), (plugin.name, SCORE)}
    return found


def _is_asked_outside(profile):
    """Whether a user's plugin filters or scores, or may name nodes."""
    scores = (each.plugin for each in profile.score)
    return any(each.is_guarded for each in (*profile.pre_filter, *profile.filter, *scores))


def _statuses(result):
    if result is None:
        return None
    if result.codes is None:
        return np.array([None])
    per_code = [None, *(str(each) for each in result.statuses)]
    return np.array([per_code[code] for code in result.codes.tolist()], dtype=object)
