"""LocalWorkers: the workers of one decision path, in its process.

Each has a `Scorer`, which evaluates new classes on its rows, and a `Ranker`, which lists the best
of its rows. Their answers are packed and unpacked as messages are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from roadstead.cycle.batch import CompiledKernel, PodInCycle
from roadstead.cycle.merged_lists import best_rows
from roadstead.cycle.messages import RankAnswer, RankRequest, ScoreAnswer
from roadstead.cycle.ranker import Ranker
from roadstead.cycle.scored_parts import ScoredParts
from roadstead.cycle.scorer import Scorer
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.facts.wire import encode_facts
from roadstead.framework.profile import Profile
from roadstead.framework.worker_results import WorkerResults
from roadstead.kernel.arrays import U64
from roadstead.kernel.best_rows import BestRows
from roadstead.nodes.pod_class import PodClasses
from roadstead.nodes.table import NodeTable
from roadstead.protocol.codec import from_wire, to_wire
from roadstead.protocol.plain_data import pack, unpack

LISTED_PER_WORKER = 4
"""Number of rows that a worker lists for a class: so few that unlisted rows are needed, too."""


class LocalWorkers:
    """Workers over copies of the rows of a path's table.

    A node's arrival is its number, from 0, in the order of all nodes that were ever added to the
    path's table. Worker k of n has the nodes whose arrival modulo n is k. profiles_of: returns
    profiles by scheduler name, for a worker's classes.
    """

    def __init__(
        self,
        table: NodeTable,
        count: int,
        profiles_of: Callable[[PodClasses], Mapping[str, Profile]],
    ) -> None:
        self._table = table
        # Which worker has which rows, and the merge of their answers.
        self._parts = ScoredParts(table, count)
        tables = [NodeTable(PodClasses()) for _ in range(count)]
        profiles = [profiles_of(each.classes) for each in tables]
        self._scorers = [Scorer(*each) for each in zip(tables, profiles, strict=True)]
        self._rankers = [
            Ranker(scorer.by_arrival, scorer.table, of_worker)
            for scorer, of_worker in zip(self._scorers, profiles, strict=True)
        ]
        # By node: the table of the worker that has it.
        self._table_of: dict[str, NodeTable] = {}

    def add_node(self, facts: NodeFacts, arrival: int) -> None:
        """Add a node to its worker."""
        table = self._scorers[arrival % len(self._scorers)].table
        table.add_node(facts, arrival)
        self._table_of[facts.name] = table

    def remove_node(self, name: str) -> None:
        """Remove a node from its worker."""
        self._table_of.pop(name).remove_node(name)

    def update_node(self, facts: NodeFacts) -> None:
        """Update a node at its worker."""
        self._table_of[facts.name].update_node(facts)

    def add_pod(
        self,
        node_name: str,
        facts: PodFacts,
        uid: str,
        key: str,
        started_s: float | None = None,
    ) -> None:
        """Add a pod to its node's worker."""
        table = self._table_of[node_name]
        pod_class = table.classes.pod_class(facts)
        table.add_pod(node_name, pod_class, uid=uid, key=key, started_s=started_s)

    def remove_pod(self, node_name: str, facts: PodFacts, uid: str) -> None:
        """Remove a pod from its node's worker."""
        table = self._table_of[node_name]
        table.remove_pod(node_name, table.classes.pod_class(facts), uid=uid)

    def score(self, pods: Sequence[PodInCycle]) -> list[WorkerResults]:
        """Return results for each pod's class; none if no answer is usable."""
        classes = [encode_facts(pod.pod_class.facts) for pod in pods]
        answers = {
            number: self._score_answer(self._scorers[number], classes)
            for number in self._parts.rows.with_rows()
        }
        # In one thread, no node changes while a worker scores it.
        touched: dict[int, Sequence[str]] = dict.fromkeys(answers, ())
        return self._parts.merge_answers(answers, touched, len(pods)) or []

    def _score_answer(self, scorer: Scorer, classes: Sequence[bytes]) -> ScoreAnswer:
        columns = tuple(scorer.columns(each, node_count=len(self._table)) for each in classes)
        answer = ScoreAnswer(
            seq=0, rows=len(scorer.table), digest=scorer.digest, touched=b"", classes=columns
        )
        return from_wire(ScoreAnswer, unpack(pack(to_wire(answer))))

    def list_best(
        self, pods: Sequence[PodInCycle], hashes: U64, compiled_kernel: CompiledKernel
    ) -> BestRows | None:
        """Return the best rows of each pod's class; None if no list is usable.

        hashes: tie-break hashes of the pods.
        """
        no_rows = np.zeros(0, np.int64)
        classes = tuple(encode_facts(pod.pod_class.facts) for pod in pods)
        request = RankRequest(
            seq=0, excluded=b"", classes=classes, draws=hashes.tobytes(), most=LISTED_PER_WORKER
        )
        rows = self._parts.rows
        answers: dict[int, RankAnswer] = {}
        for number in rows.with_rows():
            answer = self._rankers[number].rank(request, compiled_kernel, no_rows)
            answers[number] = from_wire(RankAnswer, unpack(pack(to_wire(answer))))
        signatures = [pod.signature for pod in pods]
        return best_rows(rows, answers, signatures, hashes, LISTED_PER_WORKER, no_rows)
