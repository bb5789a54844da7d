from hypothesis import given
from hypothesis import strategies as st

from roadstead.binder.commit_log import CommitLog


def log_of(*batches):
    """Batches that are acknowledged at 1.0 s, 2.0 s, … after 0.1 s of processor time each."""
    log = CommitLog()
    for number, batch in enumerate(batches, 1):
        for uid in batch:
            log.note(uid)
        log.mark(float(number), number / 10)
    return log


def test_a_page_has_the_commits_with_the_time_of_their_batch():
    log = log_of(["a", "b"], ["c"])

    assert log.page(0, 10) == (["a", "b", "c"], [(2, 1.0, 0.1), (1, 2.0, 0.2)])
    assert log.total == 3


def test_unmarked_commits_are_not_acknowledged_yet():
    log = log_of(["a"])
    log.note("b")

    assert log.page(0, 10) == (["a"], [(1, 1.0, 0.1)])
    assert log.total == 1


def test_a_mark_without_new_commits_is_no_batch():
    assert log_of([], ["a"], []).page(0, 10) == (["a"], [(1, 2.0, 0.2)])


def test_an_empty_log_has_an_empty_page():
    log = CommitLog()

    assert (*log.page(0, 10), log.total) == ([], [], 0)


@given(st.lists(st.integers(0, 4), max_size=6), st.integers(1, 5))
def test_pages_of_any_size_return_all_commits_once_with_the_same_times(sizes, count):
    uids = iter(range(1000))
    log = log_of(*([str(next(uids)) for _ in range(size)] for size in sizes))
    whole, whole_times = log.page(0, 1000)

    seen, times = [], []
    while len(seen) < log.total:
        page, page_times = log.page(len(seen), count)
        seen += page
        times += [when for many, *when in page_times for _ in range(many)]

    assert seen == whole
    assert times == [when for many, *when in whole_times for _ in range(many)]
