"""Rows that are equal for a relation form one cell, and are decided as if looked at one by one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roadstead.config.model import default_config
from roadstead.framework.tie_break import TieBreak
from roadstead.kernel import cell_layout
from roadstead.kernel import kernel as kernel_module
from tests.actors import fleets
from tests.builders import MIB, pod
from tests.kernel.test_equality import TIE_BREAKS, Batches, Plain, World, compiled_kernel, play
from tests.kernel.test_kernel import RELATED, WEB, KernelBatch, zones
from tests.strategies import TAINTS, ZONE

RACK = "rack"
KEYS = st.sampled_from([ZONE, ZONE, RACK, fleets.HOSTNAME])
APPS = st.sampled_from([fleets.apps("web"), fleets.apps("db"), fleets.apps("web", "db")])
SPREADS = st.builds(
    fleets.spread,
    KEYS,
    st.integers(1, 3),
    st.sampled_from(["DoNotSchedule", "ScheduleAnyway"]),
    APPS,
)
TERMS = st.builds(fleets.near, APPS, KEYS)
WEIGHTED = st.builds(fleets.near, APPS, KEYS, st.sampled_from([1, 50]))


def _few(strategy, most=1):
    return st.lists(strategy, max_size=most, unique_by=repr).map(tuple)


PODS = st.builds(
    pod,
    cpu=st.sampled_from([None, 100, 500]),
    memory=st.sampled_from([None, 100 * MIB]),
    labels=st.sampled_from([{"app": "web"}, {"app": "db"}]),
    spread_constraints=_few(SPREADS, 2),
    pod_affinity=_few(TERMS),
    pod_anti_affinity=_few(TERMS),
    preferred_pod_affinity=_few(WEIGHTED),
    preferred_pod_anti_affinity=_few(WEIGHTED),
)


@st.composite
def worlds(draw):
    """Draw a fleet of some zones and racks; some nodes lack a key or prefer to have no pods."""
    sizes = st.sampled_from([1000, 1000, 3999])
    shapes = draw(st.lists(sizes, min_size=4, max_size=120))
    zones_of = draw(st.sampled_from([("a",), ("a", "b", "c"), ("a", "b", None)]))
    soft = draw(st.sampled_from([(), (TAINTS[2],)]))
    nodes = [
        fleets.host(
            number,
            zones_of[number % len(zones_of)],
            cpu=cpu,
            pods=draw(st.integers(1, 6)) if number < 8 else 6,
            labels={RACK: f"r{number % 5 % 3}"} if number % 7 else {},
            taints=soft if number % 4 == 1 else (),
        )
        for number, cpu in enumerate(shapes)
    ]
    kinds = draw(st.lists(PODS, min_size=1, max_size=3))
    batch = st.lists(st.tuples(st.sampled_from(kinds), st.booleans()), min_size=1, max_size=25)
    running = draw(st.lists(st.sampled_from(kinds), max_size=3))
    clusters = [(each, running if number < 3 else []) for number, each in enumerate(nodes)]
    return World(clusters, draw(st.lists(batch, min_size=1, max_size=2)))


@settings(deadline=None, max_examples=60)
@given(worlds(), TIE_BREAKS, st.booleans())
def test_with_cells_pods_are_decided_like_by_the_reference(world, tie_break, name_best):
    config = default_config().profiles[0]

    by_cells = play(Batches(world, config, tie_break, compiled_kernel(), name_best), world)

    assert by_cells == play(Plain(world, config, tie_break, None, name_best), world)


@settings(deadline=None, max_examples=60)
@given(worlds(), TIE_BREAKS, st.booleans(), st.sampled_from([("MAX_CELLS", 0), ("ADDED_MAX", 1)]))
def test_with_cells_pods_are_decided_like_row_by_row(world, tie_break, name_best, limit):
    config = default_config().profiles[0]

    by_cells = play(Batches(world, config, tie_break, compiled_kernel(), name_best), world)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cell_layout, *limit)
        by_rows = play(Batches(world, config, tie_break, compiled_kernel(), name_best), world)
    assert by_cells == by_rows


@pytest.fixture
def cell_sets(monkeypatch):
    """Collect the cells of each kernel that has any."""
    found = []

    class Noted(cell_layout.CellChooser):
        def prepare(self, counters, classes):
            prepared = super().prepare(counters, classes)
            if prepared is not counters:
                found.append(prepared.cells)
            return prepared

    monkeypatch.setattr(kernel_module, "CellChooser", Noted)
    return found


@pytest.fixture(autouse=True)
def _few_pods_are_worthwhile(monkeypatch):
    monkeypatch.setattr(cell_layout, "MIN_PODS", 1)


def in_zones(count):
    """Return nodes of three zones, without pods."""
    return [(fleets.host(number, "abc"[number % 3]), []) for number in range(count)]


def spread_apart(app):
    """Return a pod of an app that is spread over zones."""
    constraint = fleets.spread(selector=fleets.apps(app))
    return pod(cpu=100, labels={"app": app}, spread_constraints=(constraint,))


def test_each_zone_is_a_cell(cell_sets):
    related = pod(cpu=100, labels=WEB, **RELATED["hard spread"])

    placed = KernelBatch(zones(12), *[related] * 7, tie_break=TieBreak("random", 3)).decide()

    (cells,) = cell_sets
    assert cells.cell_count.tolist() == [3]
    assert np.bincount(cells.cell_at[0]).tolist() == [4, 4, 4]
    zone_of = {f"n{number}": "abc"[number % 3] for number in range(12)}
    counts = [sum(zone_of[name] == zone for name in placed) for zone in "abc"]
    assert sorted(counts) == [2, 2, 3]


def test_nodes_with_and_without_a_pod_are_cells_of_a_hostname_term(cell_sets):
    alone = fleets.near(fleets.apps("web"), fleets.HOSTNAME)
    related = pod(labels=WEB, pod_anti_affinity=(alone,))

    placed = KernelBatch(zones(12), *[related] * 5).decide()

    (cells,) = cell_sets
    assert len(set(placed)) == 5
    assert cells.cell_count.tolist() == [2]
    assert np.bincount(cells.cell_at[0]).tolist() == [7, 5]


def test_nodes_with_equal_counts_of_a_soft_constraint_are_a_cell(cell_sets):
    constraint = fleets.spread(fleets.HOSTNAME, when="ScheduleAnyway", selector=fleets.apps("web"))
    related = pod(labels=WEB, spread_constraints=(constraint,))

    placed = KernelBatch(zones(6), *[related] * 9).decide()

    (cells,) = cell_sets
    assert sorted(np.unique(placed, return_counts=True)[1]) == [1, 1, 1, 2, 2, 2]
    assert cells.cell_count.tolist() == [3]
    assert sorted(np.bincount(cells.cell_at[0])) == [0, 3, 3]


def test_with_too_many_cells_rows_are_evaluated_one_by_one(cell_sets, monkeypatch):
    monkeypatch.setattr(cell_layout, "ADDED_MAX", 1)
    constraint = fleets.spread(fleets.HOSTNAME, when="ScheduleAnyway", selector=fleets.apps("web"))
    related = pod(labels=WEB, spread_constraints=(constraint,))

    placed = KernelBatch(zones(6), *[related] * 15).decide()

    (cells,) = cell_sets
    assert sorted(np.unique(placed, return_counts=True)[1]) == [2, 2, 2, 3, 3, 3]
    assert cells.is_full.tolist() == [True]
    assert cells.last_cell_set.tolist() == [-1]


@pytest.mark.parametrize("when", ["DoNotSchedule", "ScheduleAnyway"])
@pytest.mark.parametrize("nodes", [90, 400])
def test_the_tie_break_chooses_among_equal_nodes_in_some_zones(cell_sets, when, nodes):
    constraint = fleets.spread(when=when, selector=fleets.apps("web"))
    related = pod(cpu=1000, labels=WEB, spread_constraints=(constraint,))
    world, tie_break = World(in_zones(nodes), [[(related, False)] * 40]), TieBreak("random", 5)
    config = default_config().profiles[0]

    by_cells = play(Batches(world, config, tie_break, compiled_kernel()), world)

    assert cell_sets[0].cell_count.tolist() == [3]
    assert by_cells == play(Plain(world, config, tie_break, None), world)


def test_cells_are_used_for_counter_sets_with_enough_pods(cell_sets, monkeypatch):
    monkeypatch.setattr(cell_layout, "MIN_PODS", 4)
    web, db = spread_apart("web"), spread_apart("db")
    often, seldom = [(web, False)] * 6, [(db, False)] * 2
    world, config = World(in_zones(30), [often + seldom]), default_config().profiles[0]

    by_cells = play(Batches(world, config, TieBreak(), compiled_kernel()), world)

    assert by_cells == play(Plain(world, config, TieBreak(), None), world)
    assert sorted(cell_sets[0].cell_set_of_class.tolist()) == [-1, 0]


def test_the_rows_of_all_cells_are_bounded(cell_sets, monkeypatch):
    monkeypatch.setattr(cell_layout, "MAX_STORED", 30)
    kinds = [spread_apart(name) for name in ("web", "db", "cache")]
    world = World(in_zones(30), [[(kind, False) for kind in kinds] * 4])
    config = default_config().profiles[0]

    by_cells = play(Batches(world, config, TieBreak(), compiled_kernel()), world)

    assert by_cells == play(Plain(world, config, TieBreak(), None), world)
    assert [sorted(each.cell_set_of_class.tolist()) for each in cell_sets] == [[-1, -1, 0]]


def test_without_feasible_nodes_no_cells_are_built():
    world = World([], [[(spread_apart("web"), False)] * 3])
    config, tie_break = default_config().profiles[0], TieBreak("random")

    by_kernel = play(Batches(world, config, tie_break, compiled_kernel(), False), world)

    assert by_kernel == play(Plain(world, config, tie_break, None, False), world)
