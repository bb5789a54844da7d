"""Proves the commit rule of the model, and that it is the binder's."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roadstead.binder import Acknowledge, BinderCore, BinderSettings, BindRequest, Bound
from roadstead.binder.verification import Verifier
from roadstead.lab.omega_cell import Cell, rank_among_equals, room
from roadstead.placements import TableStore
from tests.builders import MIB, node, pod, profile_of

FIT = {"preFilter": ["NodeResourcesFit"], "filter": ["NodeResourcesFit"]}


def cell_of(machines, cpu=4, memory=8):
    return Cell(machines, np.array([cpu, memory], dtype=np.int64))


def ints(*values):
    return np.array(values, dtype=np.int64)


def test_each_equal_value_is_ranked_by_earlier_ones():
    assert rank_among_equals(ints(7, 3, 7, 7, 3)).tolist() == [0, 0, 1, 2, 1]
    assert rank_among_equals(ints()).tolist() == []


def test_the_free_amount_is_that_of_the_scarcest_requested_resource():
    free = np.array([[5, 9], [0, 9], [-1, 9]])

    assert room(free, ints(2, 4)).tolist() == [2, 0, 0]
    assert room(free, ints(0, 4)).tolist() == [2, 2, 2]
    assert (room(free, ints(0, 0)) > 1000).all()


def test_tasks_above_the_free_amount_of_a_machine_are_conflicts_under_fit():
    cell = cell_of(2)
    seen = cell.view(0.0)

    accepted = cell.commit(ints(0, 0, 0, 1), ints(2, 2), seen, "fit", "incremental")

    assert accepted.tolist() == [True, True, False, True]
    assert cell.free.tolist() == [[0, 4], [2, 6]]
    assert cell.used_fraction() == pytest.approx(6 / 8)


def test_any_change_since_the_read_is_a_conflict_under_version():
    cell = cell_of(2)
    seen = cell.view(0.0)
    cell.claim(ints(0), ints(1, 1))

    accepted = cell.commit(ints(0, 1, 1), ints(1, 1), seen, "version", "incremental")

    assert accepted.tolist() == [False, True, True]


def test_an_ended_task_frees_resources_and_changes_no_version():
    cell = cell_of(1)
    cell.claim(ints(0), ints(4, 1))
    seen = cell.view(0.0)

    cell.release(ints(0), ints(4, 1))

    assert cell.commit(ints(0), ints(4, 1), seen, "version", "incremental").all()
    assert cell.used_fraction() == 1.0


@pytest.mark.parametrize("detection", ["fit", "version"])
def test_one_conflict_reverts_a_whole_all_or_nothing_transaction(detection):
    cell = cell_of(2)
    seen = cell.view(0.0)
    cell.claim(ints(0), ints(4, 4))
    before = cell.free.copy()

    accepted = cell.commit(ints(0, 1), ints(1, 1), seen, detection, "all-or-nothing")

    assert not accepted.any()
    assert (cell.free == before).all()


nodes = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), min_size=1, max_size=4)
requests = st.tuples(st.integers(0, 4), st.integers(0, 4))


@pytest.mark.parametrize("detection", ["fit", "version"])
@pytest.mark.parametrize("transaction", ["incremental", "all-or-nothing"])
@given(free=nodes, data=st.data(), request=requests)
@settings(max_examples=40)
def test_the_model_and_the_binder_commit_the_same(detection, transaction, free, data, request):
    some = st.lists(st.integers(0, len(free) - 1), max_size=10)
    cell, wanted = cell_of(len(free)), ints(*request)
    cell.free[:] = free
    seen = cell.view(0.0)
    by_others = fitting(data.draw(some), cell, wanted)
    by_us = fitting(data.draw(some), cell, wanted)
    cell.claim(by_others, wanted)

    by_model = cell.commit(by_us, wanted, seen, detection, transaction)

    binder = Binder(free, request, detection)
    binder.commit("them", by_others, "")
    name = "job" if transaction == "all-or-nothing" else ""
    assert by_model.tolist() == binder.commit("us", by_us, name)


def fitting(tasks, cell, wanted):
    """Return the tasks that a scheduler would place on the state that it reads."""
    tasks = np.array(tasks, dtype=np.int64)
    return tasks[rank_among_equals(tasks) < room(cell.free[tasks], wanted)]


class Binder:
    """The binder's core over nodes with given free amounts, and pods of one size."""

    def __init__(self, free, request, detection):
        store = TableStore()
        profile = profile_of(FIT, classes=store.table.classes)
        verifier = Verifier(store.table, {"default-scheduler": profile})
        self.core = BinderCore(
            store,
            lambda each: verifier.verify(each.facts, each.node_name),
            BinderSettings(checks_versions=detection == "version"),
        )
        for index, (cpu, memory) in enumerate(free):
            self.core.add_node(node(f"n{index}", cpu=cpu, memory=memory * MIB))
        self.read_version = self.core.last_lsn
        self.facts = pod(cpu=request[0], memory=request[1] * MIB)

    def commit(self, owner, tasks, transaction):
        """Request all tasks in one transaction, decided on the initial state."""
        uids = [f"{owner}-{index}" for index in range(len(tasks))]
        self.core.add_pods((uid, f"default/{uid}", self.facts) for uid in uids)
        self.core.advance_epoch(owner, 1)
        asked = [
            BindRequest(
                *(f"t-{uid}", uid, f"default/{uid}", f"n{machine}", self.facts, owner, 1),
                read_version=self.read_version,
                transaction=transaction,
            )
            for uid, machine in zip(uids, tasks.tolist(), strict=True)
        ]
        effects = self.core.bind(asked)
        effects += self.core.flushed(self.core.last_lsn)
        bound = {
            each.token
            for each in effects
            if isinstance(each, Acknowledge) and isinstance(each.result, Bound)
        }
        return [each.token in bound for each in asked]
