"""The state sent to restarted actors: nominations on which queue and cache must agree."""

import pytest

from roadstead.actors.interface import NOTHING, DeadlineError, RunFailedError
from roadstead.actors.messages import BoundPage, NominateBatch, Submitted
from roadstead.actors.messages.changes import ClusterChanges
from roadstead.actors.messages.recovery import (
    EndOwner,
    Nominated,
    OwnerEpoch,
    PodNodes,
    PodRemoval,
    PodsPage,
    Uids,
)
from roadstead.actors.supervisor.replacing import SENDS_TO_NEW, Refill
from roadstead.config.settings import Settings
from roadstead.facts.pod import GroupMembership
from tests.actors.test_cache_recovery import World
from tests.actors.world import Fake, batch_of
from tests.builders import pod

SCHEDULERS = {"scheduler-0"}


def refill(held, queue_answer, **answers):
    """Return a Refill after the end of a scheduler, for these nominations of cache and queue."""
    answers = {"fence_owner": NOTHING, "nominate": NOTHING, "observe": NOTHING, **answers}
    of_cache = {"assumed_by": Uids(()), "end_owner": NOTHING}
    refs = {
        "binder": Fake("binder", evicted_pods=batch_of(), **answers),
        "cache": Fake("cache", **of_cache, restream=NOTHING, nominated=held, **answers),
        "queue": Fake(
            "queue", nominated=queue_answer, leased_to=Uids(()), end_owner=NOTHING, **answers
        ),
    }
    epochs = {"scheduler-0": 2, **dict.fromkeys(refs, 1)}
    return Refill(refs, epochs, Settings()), refs


async def test_the_cache_gets_withdrawn_nominations_and_the_queue_the_freed_resources():
    held = Nominated(batch_of("a", "b"), ("n1", "n2"))
    queue_answer = Nominated(batch_of("b"), ("n2",), ("uid-a",))
    again, refs = refill(held, queue_answer)

    await again.fill(SCHEDULERS)

    assert refs["queue"].received("nominated") == [Uids(("uid-a", "uid-b"))]
    assert refs["cache"].received("nominate") == [NominateBatch(batch_of("a"), ("",), (False,))]
    assert refs["queue"].received("observe") == [ClusterChanges(gone=batch_of("a"))]


async def test_the_cache_gets_nominations_that_only_the_queue_knows():
    again, refs = refill(Nominated(batch_of(), ()), Nominated(batch_of("a"), ("n1",)))

    await again.fill(SCHEDULERS)

    assert refs["cache"].received("nominate") == [NominateBatch(batch_of("a"), ("n1",), (False,))]
    assert refs["queue"].received("observe") == []


async def test_equal_nominations_cause_no_message():
    same = Nominated(batch_of("a"), ("n1",))
    again, refs = refill(same, same)

    await again.fill(SCHEDULERS)

    assert refs["cache"].received("nominate") == []


async def test_a_new_queue_first_gets_bound_gang_members_but_not_initial_ones():
    gang = pod(pod_group=GroupMembership("g", 2))
    everyone = batch_of("bound", "ran", "waits", facts=gang)
    page = PodsPage(everyone, ("n1", "n1", ""), 0, (1,))
    nobody = Nominated(batch_of(), ())
    new = {"bound_members": NOTHING, "submit": Submitted(1, ()), "restored": NOTHING}
    again, refs = refill(nobody, nobody, pods_page=page, bound=BoundPage((), (), 1), **new)

    await again.fill({"queue"})

    assert refs["queue"].received("bound_members") == [batch_of("bound", facts=gang)]
    assert refs["queue"].received("submit") == [batch_of("waits", facts=gang)]
    assert [name for name, _ in refs["queue"].calls] == ["bound_members", "submit", "restored"]


async def test_a_new_queue_without_gangs_gets_pending_pods_only():
    page = PodsPage(batch_of("bound", "waits"), ("n1", ""))
    nobody = Nominated(batch_of(), ())
    new = {"submit": Submitted(1, ()), "restored": NOTHING}
    again, refs = refill(nobody, nobody, pods_page=page, bound=BoundPage((), (), 1), **new)

    await again.fill({"queue"})

    assert [name for name, _ in refs["queue"].calls] == ["submit", "restored"]


async def test_pages_are_requested_until_the_binder_names_no_next_one():
    def page(request):
        return PodsPage(batch_of(f"p{request.start}"), ("",), {0: 7, 7: 5}.get(request.start, 0))

    nobody = Nominated(batch_of(), ())
    new = {"submit": Submitted(1, ()), "restored": NOTHING}
    again, refs = refill(nobody, nobody, pods_page=page, bound=BoundPage((), (), 1), **new)

    await again.fill({"queue"})

    assert refs["queue"].received("submit") == [batch_of(name) for name in ("p0", "p7", "p5")]


async def test_a_run_ends_with_an_error_if_a_new_queue_is_too_small_for_accepted_pods():
    page = PodsPage(batch_of("a", "b"), ("", ""))
    nobody = Nominated(batch_of(), ())
    again, _ = refill(nobody, nobody, pods_page=page, submit=Submitted(1, ("uid-b",)))

    with pytest.raises(RunFailedError, match=r"queue_max_pods: \d+\): it refused 1 pods that had"):
        await again.fill({"queue"})


async def test_changes_that_earlier_epochs_made_before_their_fence_are_reverted():
    nobody, page = Nominated(batch_of(), ()), PodsPage(batch_of("a"), ("",))
    new = {"pods_page": page, "submit": Submitted(1, ()), "restored": NOTHING}
    new |= {"bound": BoundPage((), (), 1), "pod_nodes": PodNodes((None,))}
    again, refs = refill(nobody, nobody, **new)
    # Late messages of an earlier epoch arrived before queue and cache fenced them.
    refs["cache"].answers["assumed_by"] = refs["queue"].answers["leased_to"] = Uids(("uid-a",))

    await again.fill({"queue", *SCHEDULERS})

    ends = EndOwner(OwnerEpoch("scheduler-0", 2), ("uid-a",), (None,))
    assert refs["cache"].received("end_owner") == refs["queue"].received("end_owner") == [ends]
    names = [name for name, _ in refs["queue"].calls]
    assert names.index("submit") < names.index("end_owner")


async def test_a_message_to_a_slow_new_actor_is_sent_again():
    late = iter([DeadlineError("late")] * (SENDS_TO_NEW - 1))
    same = Nominated(batch_of(), ())
    again, refs = refill(same, same, fence_owner=lambda _: next(late, NOTHING))

    await again.fill(SCHEDULERS)

    assert len(refs["binder"].received("fence_owner")) == SENDS_TO_NEW


async def test_an_unresponsive_new_actor_is_abandoned():
    same = Nominated(batch_of(), ())
    again, refs = refill(same, same, fence_owner=DeadlineError("late"))

    with pytest.raises(DeadlineError, match="late"):
        await again.fill(SCHEDULERS)

    assert len(refs["binder"].received("fence_owner")) == SENDS_TO_NEW


async def test_the_cache_reports_nominated_pods_until_they_are_deleted():
    world = await World().assuming()
    nominated = NominateBatch(batch_of("a", "b"), ("n1", "n2"), (False, False))
    await world.cache.nominate(nominated)
    queue_answer = await world.cache.nominated(Uids(()))

    await world.cache.remove_pods(PodRemoval(("uid-a",)))

    assert (queue_answer.pods.uids, queue_answer.nodes) == (("uid-a", "uid-b"), ("n1", "n2"))
    assert (await world.cache.nominated(Uids(()))).pods.uids == ("uid-b",)
