import time

from hypothesis import given
from hypothesis import strategies as st

from roadstead.actors.binder.commits import CommitLog
from roadstead.actors.messages import PageAsk


def log_of(*batches):
    log = CommitLog()
    for batch in batches:
        for uid in batch:
            log.note(uid)
        log.mark()
    return log


def test_a_page_has_the_commits_with_the_time_of_their_batch():
    before_s = time.monotonic()

    page = log_of(["a", "b"], ["c"]).page(PageAsk(0, 10))

    assert page.uids == ("a", "b", "c")
    assert [count for count, _ in page.times] == [2, 1]
    times = [time_s for _, time_s in page.times]
    assert before_s <= times[0] <= times[1] <= page.now_s
    assert page.total == 3


def test_what_is_not_marked_is_not_acknowledged_yet():
    log = log_of(["a"])
    log.note("b")

    assert log.page(PageAsk(0, 10)).uids == ("a",)
    assert log.page(PageAsk(0, 10)).total == 1


def test_a_mark_behind_nothing_new_is_no_batch():
    log = log_of([], ["a"], [])

    assert len(log.page(PageAsk(0, 10)).times) == 1


def test_an_empty_log_has_an_empty_page():
    page = CommitLog().page(PageAsk(0, 10))

    assert (page.uids, page.times, page.total) == ((), (), 0)


@given(st.lists(st.integers(0, 4), max_size=6), st.integers(1, 5))
def test_pages_of_any_size_give_all_commits_once_with_the_same_times(sizes, count):
    uids = iter(range(1000))
    log = log_of(*([str(next(uids)) for _ in range(size)] for size in sizes))
    whole = log.page(PageAsk(0, 1000))

    seen, times = [], []
    while len(seen) < whole.total:
        page = log.page(PageAsk(len(seen), count))
        seen += page.uids
        times += [time_s for many, time_s in page.times for _ in range(many)]

    assert tuple(seen) == whole.uids
    assert times == [time_s for many, time_s in whole.times for _ in range(many)]
