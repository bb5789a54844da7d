import hashlib
from collections import Counter
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from roadstead.framework.tie_break import Chooser, TieBreak, ranked
from tests.builders import node, table_of

CHI_SQUARE_15_AT_ONE_IN_10_000 = 44.3


def nodes_named(*names):
    return table_of(*(node(name) for name in names))


def chosen(table, tie_break, pod_key, attempt=1, names=None):
    rows = table.rows_of(names or table.names)
    return table.names[Chooser(tie_break).one_of(table, rows, pod_key, attempt)]


def splitmix64_finalizer(value):
    mask = 2**64 - 1
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 & mask
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB & mask
    return value ^ (value >> 31)


def place_of_bucket(bucket, draw):
    first, times, second, again, last = (draw >> shift & 4095 for shift in (0, 12, 24, 36, 48))
    place = (bucket ^ first) * (times | 1) & 4095
    place = ((place ^ place >> 6) + second) * (again | 1) & 4095
    return place ^ place >> 6 ^ last


numbers = st.integers(0, 2**64 - 1)


@given(numbers, st.lists(numbers, max_size=5))
def test_ranks_sort_by_bucket_order_of_the_draw_and_by_splitmix64_within(draw, hashes):
    ranks = ranked(draw, np.array(hashes, dtype=np.uint64))

    assert ranks.tolist() == [
        place_of_bucket(each >> 52, draw) << 52 | splitmix64_finalizer(each ^ draw) >> 12
        for each in hashes
    ]


@given(numbers)
def test_every_bucket_has_its_own_position_in_the_order_of_a_draw(draw):
    ranks = ranked(draw, np.arange(4096, dtype=np.uint64) << np.uint64(52))

    assert sorted((ranks >> np.uint64(52)).tolist()) == list(range(4096))


def test_a_draw_depends_on_seed_pod_and_attempt_only():
    draw = TieBreak(seed=7).pod_hash("default/web", 2)

    assert draw == int.from_bytes(
        hashlib.blake2b(b"7/2/default/web", digest_size=8).digest(), "little"
    )
    others = (
        TieBreak(seed=8).pod_hash("default/web", 2),
        TieBreak(seed=7).pod_hash("default/web", 3),
        TieBreak(seed=7).pod_hash("default/job", 2),
    )
    assert len({draw, *others}) == 4


@given(st.permutations([f"n{i}" for i in range(6)]), st.integers(0, 5), st.integers(1, 3))
def test_a_choice_does_not_depend_on_the_order_of_rows(order, seed, attempt):
    sorted_table, shuffled = nodes_named(*sorted(order)), nodes_named(*order)

    for kind in ("random", "first"):
        tie_break = TieBreak(kind, seed)
        names = [
            chosen(table, tie_break, "default/web", attempt, names)
            for table in (sorted_table, shuffled)
            for names in (None, order[::-1])
        ]
        assert len(set(names)) == 1


def test_the_same_node_is_chosen_from_a_subset():
    table = nodes_named(*(f"n{i}" for i in range(9)))
    winner = chosen(table, TieBreak(), "default/web")

    fewer = [winner, *(name for name in table.names if name != winner)][:4]

    assert chosen(table, TieBreak(), "default/web", names=fewer) == winner


def test_a_retry_and_another_pod_and_another_seed_may_choose_another_node():
    table = nodes_named(*(f"n{i}" for i in range(50)))

    attempts = {chosen(table, TieBreak(), "default/web", attempt) for attempt in range(20)}
    pods = {chosen(table, TieBreak(), f"default/web-{i}") for i in range(20)}
    seeds = {chosen(table, TieBreak(seed=i), "default/web") for i in range(20)}

    assert min(map(len, (attempts, pods, seeds))) > 10


def test_choices_over_many_pods_are_uniform():
    table = nodes_named(*(f"node-{i}" for i in range(16)))
    chooser = Chooser(TieBreak(seed=1))
    rows = np.arange(16)
    draws = 8000

    counts = Counter(chooser.one_of(table, rows, f"default/pod-{i}", 1) for i in range(draws))

    expected = draws / 16
    chi_square = sum((counts[row] - expected) ** 2 / expected for row in range(16))
    assert chi_square < CHI_SQUARE_15_AT_ONE_IN_10_000


def test_choices_for_successive_pods_are_independent():
    table = nodes_named(*(f"node-{i}" for i in range(4)))
    chooser = Chooser(TieBreak(seed=1))
    draws = 8000

    row_of = [chooser.one_of(table, np.arange(4), f"default/pod-{i}", 1) for i in range(draws + 1)]
    counts = Counter(pairwise(row_of))

    expected = draws / 16
    chi_square = sum((counts[a, b] - expected) ** 2 / expected for a in range(4) for b in range(4))
    assert chi_square < CHI_SQUARE_15_AT_ONE_IN_10_000


def test_first_chooses_the_bytewise_smallest_name():
    table = nodes_named("n2", "n10", "N9", "né", "nz")

    assert chosen(table, TieBreak("first"), "default/web") == "N9"
    assert chosen(table, TieBreak("first"), "default/web", names=["n2", "n10"]) == "n10"
    assert chosen(table, TieBreak("first"), "default/web", names=["né", "nz"]) == "nz"


def test_first_respects_added_and_removed_nodes():
    table = nodes_named("n2", "n3")
    chooser = Chooser(TieBreak("first"))
    first = lambda: table.names[chooser.one_of(table, np.arange(len(table)), "p", 1)]  # noqa: E731
    assert first() == first() == "n2"

    table.add_node(node("n1"))
    assert first() == "n1"

    table.remove_node("n1")
    table.remove_node("n2")
    table.add_node(node("n4"))
    assert first() == "n3"


def test_first_works_with_several_tables():
    chooser = Chooser(TieBreak("first"))
    tables = [nodes_named("a", "b"), nodes_named("b", "a")]

    names = [each.names[chooser.one_of(each, np.arange(2), "p", 1)] for each in tables]

    assert names == ["a", "a"]


def test_the_only_candidate_is_chosen():
    table = nodes_named("n1", "n2")

    assert Chooser(TieBreak()).one_of(table, np.array([1]), "p", 1) == 1
