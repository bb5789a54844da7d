"""Scores of placed pods as a run collects them from its schedulers."""

import pytest

from roadstead.actors.interface import ActorLostError
from roadstead.actors.messages.scheduling import ScorePage
from roadstead.actors.runs import scores
from roadstead.actors.runs.scores import with_scores
from roadstead.report.result import PlacedPod
from tests.actors.world import inputs_of, plan_of, pods_of, run_inline
from tests.builders import node, pod

PLACED = (PlacedPod("d/a", "u-a", "n1"), PlacedPod("d/b", "u-b", "n2"))


class Knows:
    """A scheduler that answers page by page, or is lost."""

    def __init__(self, *rows, is_gone=False):
        self._rows, self._is_gone, self.asked = rows, is_gone, 0

    async def call(self, method, ask, *, timeout_s):
        self.asked += 1
        if self._is_gone:
            raise ActorLostError("scheduler-1 is gone")
        part = self._rows[ask.start : ask.start + ask.count]
        columns = zip(*part, strict=True) if part else ((), (), ())
        return ScorePage(*map(tuple, columns), len(self._rows))


async def test_a_pods_score_is_that_of_its_bound_node(monkeypatch):
    monkeypatch.setattr(scores, "SCORES_PER_MESSAGE", 2)
    first = Knows(("u-a", "n2", 10), ("u-a", "n1", 20), ("u-c", "n1", 30))
    second = Knows(("u-b", "n2", 40))

    found = await with_scores(PLACED, [first, second], 1.0)

    assert [each.score for each in found] == [20, 40]
    assert (found, first.asked) == (PLACED, 2), "scores do not change placements"


async def test_pods_placed_by_an_ended_scheduler_have_no_scores():
    gone = Knows(is_gone=True)

    found = await with_scores(PLACED, [gone, Knows(("u-b", "n2", 40))], 1.0)

    assert [each.score for each in found] == [None, 40]


@pytest.mark.parametrize("settings", [{}, {"schedulers": 2}])
def test_a_run_returns_the_scores_of_its_pods(settings):
    nodes = [node("n1", cpu=1000), node("n2", cpu=4000)]
    facts = pod(cpu=1000)
    outcome, _ = run_inline(inputs_of(nodes, pods_of("a", "b", facts=facts)), plan_of(**settings))

    assert all(each.score for each in outcome.placements)
