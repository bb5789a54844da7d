"""Random calls of cores find bugs that hardly any run reaches."""

from unittest.mock import patch

import pytest

from roadstead.attempts.core import AttemptsCore
from roadstead.binder.binder_journal import BinderJournal
from roadstead.binder.outcomes import PodOutcomes, RemovedPod
from roadstead.cache import attempt_ends
from roadstead.cache.core import CacheCore
from roadstead.cycle.jobs import SimulatedLatency
from roadstead.cycle.tentative import Tentative
from roadstead.framework.hint_map import HintMap
from roadstead.queue.requeueing import Requeueing
from tests.simulation.simulation import KINDS, simulate


def _nothing(self, *what):
    return None


def _any_life(token, owner, epoch):
    return True


def _no_time(self, pods):
    return 0.0


def _nobody(self, pod, assigned, rejected_by):
    return False


def _for_no_one(self, effect):
    self.removed.append(RemovedPod(effect.uid, effect.key, effect.node_name, ""))


@pytest.mark.parametrize(
    ("core", "owner", "name", "wrong", "text", "likely"),
    [
        ("cache", CacheCore, "_check_no_move", _nothing, "is allowed", 0),
        ("cache", attempt_ends, "is_of_earlier_epoch", _any_life, "assumed by earlier lives", 0),
        ("binder", BinderJournal, "_note_revisions", _nothing, "revisions of", 0),
        ("queue", HintMap, "may_matter", _nobody, "shadow of the queue", 0),
        ("queue", Requeueing, "add_own_events", _nothing, "shadow of the queue", 0),
        ("binder", PodOutcomes, "released", _for_no_one, "evicted are", 1),
        ("attempts", AttemptsCore, "_lease_again", _nothing, "shadow of ramble", 0),
        ("decisions", Tentative, "_restore", _nothing, "the table holds", 5),
        ("held", Tentative, "_end_nomination", _nothing, "nominated are", 0),
        ("policies", SimulatedLatency, "wait_s", _no_time, "are delayed", 0),
    ],
)
def test_random_calls_detect_bugs_that_runs_hardly_ever_reach(
    core, owner, name, wrong, text, likely
):
    # The seed that finds the bug at present comes first.
    seeds = likely, *(seed for seed in range(24) if seed != likely)
    with patch.object(owner, name, wrong):
        found = (simulate(seed, KINDS, among="quiet", rambles=core).problems for seed in seeds)
        assert any("at random" in each and text in each for some in found for each in some)
