"""Proves the commit rule of the model, and that it is the binder's."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roadstead.binder import BinderCore, BindRequest, Bound
from roadstead.cycle.verify import Verifier
from roadstead.lab.cell import Cell, rank_among_equals, room
from roadstead.placements import TableStore
from tests.builders import MIB, node, pod, profile_of

FIT = {"preFilter": ["NodeResourcesFit"], "filter": ["NodeResourcesFit"]}


def cell_of(machines, cpu=4, memory=8):
    return Cell(machines, np.array([cpu, memory], dtype=np.int64))


def ints(*values):
    return np.array(values, dtype=np.int64)


def test_each_equal_value_is_ranked_by_those_before_it():
    assert rank_among_equals(ints(7, 3, 7, 7, 3)).tolist() == [0, 0, 1, 2, 1]
    assert rank_among_equals(ints()).tolist() == []


def test_room_is_that_of_the_scarcest_resource_that_is_asked_for():
    free = np.array([[5, 9], [0, 9], [-1, 9]])

    assert room(free, ints(2, 4)).tolist() == [2, 0, 0]
    assert room(free, ints(0, 4)).tolist() == [2, 2, 2]
    assert (room(free, ints(0, 0)) > 1000).all()


def test_tasks_beyond_the_room_of_a_machine_are_conflicts_under_fit():
    cell = cell_of(2)
    seen = cell.view(0.0)

    accepted = cell.commit(ints(0, 0, 0, 1), ints(2, 2), seen, "fit", "incremental")

    assert accepted.tolist() == [True, True, False, True]
    assert cell.free.tolist() == [[0, 4], [2, 6]]
    assert cell.used_fraction() == pytest.approx(6 / 8)


def test_any_change_since_the_look_is_a_conflict_under_version():
    cell = cell_of(2)
    seen = cell.view(0.0)
    cell.claim(ints(0), ints(1, 1))

    accepted = cell.commit(ints(0, 1, 1), ints(1, 1), seen, "version", "incremental")

    assert accepted.tolist() == [False, True, True]


def test_an_ended_task_gives_room_back_and_changes_no_version():
    cell = cell_of(1)
    cell.claim(ints(0), ints(4, 1))
    seen = cell.view(0.0)

    cell.release(ints(0), ints(4, 1))

    assert cell.commit(ints(0), ints(4, 1), seen, "version", "incremental").all()
    assert cell.used_fraction() == 1.0


@pytest.mark.parametrize("detection", ["fit", "version"])
def test_one_conflict_undoes_the_whole_of_an_all_or_nothing_transaction(detection):
    cell = cell_of(2)
    seen = cell.view(0.0)
    cell.claim(ints(0), ints(4, 4))
    before = cell.free.copy()

    accepted = cell.commit(ints(0, 1), ints(1, 1), seen, detection, "all-or-nothing")

    assert not accepted.any()
    assert (cell.free == before).all()


nodes = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), min_size=1, max_size=4)
requests = st.tuples(st.integers(0, 4), st.integers(0, 4))


@given(free=nodes, data=st.data(), request=requests)
@settings(max_examples=60)
def test_under_fit_the_model_commits_what_the_binder_commits(free, data, request):
    tasks = data.draw(st.lists(st.integers(0, len(free) - 1), max_size=10))
    cell = cell_of(len(free))
    cell.free[:] = free
    wanted = ints(*request)

    by_model = cell.commit(
        np.array(tasks, dtype=np.int64), wanted, cell.view(0.0), "fit", "incremental"
    )

    assert by_model.tolist() == committed_by_binder(free, tasks, request)


def committed_by_binder(free, tasks, request):
    store = TableStore()
    profile = profile_of(FIT, classes=store.table.classes)
    verifier = Verifier(store.table, {"default-scheduler": profile})
    binder = BinderCore(store, lambda each: verifier.verify(each.facts, each.node_name))
    for index, (cpu, memory) in enumerate(free):
        binder.add_node(node(f"n{index}", cpu=cpu, memory=memory * MIB))
    facts = pod(cpu=request[0], memory=request[1] * MIB)
    uids = [f"u{index}" for index in range(len(tasks))]
    binder.add_pods((uid, f"default/{uid}", facts) for uid in uids)
    binder.advance_epoch("s", 1)
    asked = [
        BindRequest(f"t-{uid}", uid, f"default/{uid}", f"n{machine}", facts, "s", 1)
        for uid, machine in zip(uids, tasks, strict=True)
    ]
    effects = binder.bind(asked)
    effects += binder.flushed(binder.last_lsn)
    bound = {
        each.token
        for each in effects
        if hasattr(each, "decision") and isinstance(each.decision, Bound)
    }
    return [each.token in bound for each in asked]
