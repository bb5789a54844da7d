"""Choices within classes: off by less than one for each class, random within, seeded."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from roadstead.traces.class_sampler import ClassSampler

CHUNKS = st.lists(st.lists(st.integers(0, 6), max_size=40), max_size=6)


def chosen(chunks, share, seed):
    sampler = ClassSampler(share, seed)
    return [sampler.choose(np.array(chunk, dtype=np.int32)) for chunk in chunks]


@given(CHUNKS, st.floats(0.0, 1.0), st.integers(0, 9))
def test_each_class_has_its_share_within_one_member(chunks, share, seed):
    picks = chosen(chunks, share, seed)
    for kind in range(7):
        members = sum(chunk.count(kind) for chunk in chunks)
        count = sum(
            int(pick[np.array(chunk) == kind].sum())
            for chunk, pick in zip(chunks, picks, strict=True)
            if chunk
        )
        assert abs(count - members * share) < 1 + 1e-6


@given(CHUNKS, st.floats(0.0, 1.0), st.integers(0, 9))
def test_the_same_seed_gives_the_same_choice(chunks, share, seed):
    first, second = chosen(chunks, share, seed), chosen(chunks, share, seed)
    assert all((one == other).all() for one, other in zip(first, second, strict=True))


def test_a_share_of_one_is_everything_and_of_zero_nothing():
    chunk = [0, 1, 1, 2] * 50
    assert chosen([chunk], 1.0, 3)[0].all()
    assert not chosen([chunk], 0.0, 3)[0].any()


def test_members_of_a_class_are_equally_likely():
    counts = np.zeros(10)
    for seed in range(400):
        counts += chosen([[0] * 10], 0.3, seed)[0]
    assert counts.sum() == 1200
    assert counts.min() > 80, "none is avoided"
    assert counts.max() < 165, "none is preferred"


def test_classes_of_one_member_are_chosen_at_the_given_share():
    picks = [chosen([list(range(100))], 0.25, seed)[0].sum() for seed in range(40)]
    assert 20 < np.mean(picks) < 30
