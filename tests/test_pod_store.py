"""Each pod is stored once, by its state; of the ended pods only the last ones are known."""

from dataclasses import dataclass
from enum import StrEnum

import pytest

from roadstead.pod_store import PodStore
from roadstead.protocol.errors import IllegalTransitionError
from roadstead.transitions import History, Moved, TransitionTable


class S(StrEnum):
    UNKNOWN = "unknown"
    WAITS = "waits"
    RUNS = "runs"
    ENDED = "ended"
    FAILED = "failed"
    FORGOTTEN = "forgotten"


class E(StrEnum):
    COME = "come"
    RUN = "run"
    END = "end"
    FAIL = "fail"
    FORGET = "forget"


TABLE: TransitionTable[S, E] = TransitionTable(
    "test",
    {
        (S.UNKNOWN, E.COME): S.WAITS,
        (S.WAITS, E.RUN): S.RUNS,
        (S.WAITS, E.FORGET): S.FORGOTTEN,
        (S.RUNS, E.END): S.ENDED,
        (S.ENDED, E.COME): S.WAITS,
        (S.ENDED, E.FAIL): S.FAILED,
        (S.ENDED, E.FORGET): S.FORGOTTEN,
    },
)


@dataclass(slots=True, eq=False)
class Pod:
    uid: str
    state: S = S.UNKNOWN
    history: History = ()


def store_of(*uids: str, max_ended: int = 9) -> PodStore[Pod, S, E]:
    """Return a store in which these pods wait."""
    store: PodStore[Pod, S, E] = PodStore(
        TABLE, S.UNKNOWN, (S.WAITS, S.RUNS), (S.ENDED, S.FAILED), max_ended
    )
    store.apply_all([Pod(uid) for uid in uids], E.COME)
    return store


def end(store: PodStore[Pod, S, E], *uids: str) -> None:
    store.apply_all([store.present[uid] for uid in uids], E.RUN, E.END)
    store.validate()


def test_present_pods_are_in_order_of_arrival():
    store = store_of("b", "a", "c")
    store.apply(store.present["b"], E.RUN)

    assert list(store.present) == ["b", "a", "c"]
    assert [pod.state for pod in store.present.values()] == [S.RUNS, S.WAITS, S.WAITS]
    assert store.present["b"].history == ("come→waits", "run→runs")
    store.validate()


def test_a_batch_returns_its_moves_grouped_by_earlier_state():
    store = store_of("a", "b")
    store.apply(store.present["a"], E.RUN)
    end(store, "b")
    a, b, new = store.present["a"], store.ended["b"], Pod("c")

    assert store.apply_all([new, b], E.COME) == [
        Moved(S.UNKNOWN, S.WAITS, 0, 1),
        Moved(S.ENDED, S.WAITS, 1, 2),
    ]
    assert list(store.present.items()) == [("a", a), ("c", new), ("b", b)]
    assert not store.ended
    store.validate()


def test_an_ended_pod_is_remembered_until_enough_others_ended():
    store = store_of("a", "b", "c", max_ended=2)
    end(store, "a", "b")
    assert (list(store.present), list(store.ended)) == (["c"], ["a", "b"])

    end(store, "c")
    assert list(store.ended) == ["b", "c"]
    assert (store.find("a"), store.find("b")) == (None, store.ended["b"])


def test_the_oldest_of_the_ended_pods_are_removed():
    store = store_of("a", "b", "c", max_ended=2)
    end(store, "a", "b", "c")

    assert list(store.ended) == ["b", "c"]


def test_without_a_memory_no_ended_pod_is_remembered():
    store = store_of("a", max_ended=0)
    end(store, "a")

    assert store.find("a") is None


def test_an_ended_pod_keeps_its_place_in_the_memory_when_its_state_changes():
    store = store_of("a", "b")
    end(store, "a", "b")
    store.apply(store.ended["a"], E.FAIL)

    assert [(uid, pod.state) for uid, pod in store.ended.items()] == [
        ("a", S.FAILED),
        ("b", S.ENDED),
    ]
    store.validate()


def test_a_forgotten_pod_that_ends_again_is_remembered_as_the_last():
    store = store_of("a", "b", max_ended=1)
    pod = store.present["a"]
    end(store, "a", "b")
    store.apply(pod, E.FAIL)

    assert list(store.ended) == ["a"]


@pytest.mark.parametrize("has_ended", [False, True])
def test_a_pod_in_an_unknown_state_is_not_stored(has_ended):
    store = store_of("a", "b")
    if has_ended:
        end(store, "a")
    store.apply(store.require("a", E.FORGET), E.FORGET)

    assert store.find("a") is None
    assert store.state_of("a") is S.UNKNOWN
    assert list(store.present) == ["b"]
    store.validate()


def test_a_pod_that_returns_continues_its_history():
    store = store_of("a")
    end(store, "a")
    again, new = Pod("a"), Pod("b")
    store.inherit_histories([again, new])
    assert (again.state, new.state, new.history) == (S.ENDED, S.UNKNOWN, ())

    store.apply_all([again, new], E.COME)
    assert again.history == ("come→waits", "run→runs", "end→ended", "come→waits")
    assert store.find("a") is again
    assert not store.ended
    store.validate()


def test_no_history_is_continued_without_ended_pods():
    new = Pod("a")
    store_of("a").inherit_histories([new])

    assert (new.state, new.history) == (S.UNKNOWN, ())


def test_a_batch_with_one_illegal_transition_moves_no_pod():
    store = store_of("a", "b")
    a, b = store.present.values()
    store.apply(b, E.RUN)

    with pytest.raises(IllegalTransitionError, match="run is not allowed in state runs"):
        store.apply_all([a, b], E.RUN)
    with pytest.raises(IllegalTransitionError, match="end is not allowed in state waits"):
        store.apply(a, E.END)
    assert (a.state, a.history) == (S.WAITS, ("come→waits",))
    store.validate()


def test_an_error_contains_the_known_history_of_the_pod():
    store = store_of("a")
    assert store.require("a", E.END) is store.present["a"]

    text = 'test: "z": end is not allowed in state unknown (never came); before it: nothing'
    with pytest.raises(IllegalTransitionError) as raised:
        store.require("z", E.END, "never came")
    assert str(raised.value) == text
    text = 'test: "a": end is not allowed in state waits; before it: come→waits'
    assert str(store.illegal("a", E.END)) == text


def test_counts_include_arrivals_and_ends_by_state():
    store = store_of("a", "b", "c", "d")
    end(store, "a", "b")
    store.apply_all([store.ended["a"]], E.FAIL)
    store.apply_all([store.ended["b"], store.present["c"]], E.FORGET)
    store.apply_all([Pod("a")], E.COME)

    assert store.begun == 5
    assert [store.ended_as(state) for state in (S.ENDED, S.FAILED, S.FORGOTTEN)] == [2, 0, 1]
    assert store.ends[S.ENDED, S.FAILED] == store.ends[S.ENDED, S.FORGOTTEN] == 1
    store.validate()


def test_restored_records_of_another_store_are_unchanged():
    store = store_of("a")
    store.restore([Pod("b", S.RUNS), Pod("c", S.WAITS)])

    assert list(store.present) == ["a", "b", "c"]
    assert store.begun == 3
    store.validate()


@pytest.mark.parametrize(
    ("damage", "text"),
    [
        (lambda store: store.present.popitem(), "of 2 pods 0 are present and 1 ended"),
        (lambda store: setattr(store, "begun", 7), "of 7 pods 1 are present and 1 ended"),
        (lambda store: store.ended.update(a=store.present["a"]), "a pod is present and ended"),
        (lambda store: setattr(store, "max_ended", 0), "too many pods are remembered"),
        (lambda store: store.present.update(z=store.present.pop("a")), "a under z"),
        (lambda store: setattr(store.present["a"], "state", S.FAILED), "a is present as failed"),
        (lambda store: setattr(store.ended["b"], "state", S.RUNS), "b ended as runs"),
    ],
)
def test_validate_finds_damage(damage, text):
    store = store_of("a", "b")
    end(store, "b")
    damage(store)
    with pytest.raises(AssertionError, match=text):
        store.validate()
