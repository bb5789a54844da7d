"""A binder without a journal numbers its records all the same."""

from roadstead.actors.binder.actor import BinderActor
from roadstead.actors.messages import BindBatch, node_batch
from roadstead.journal import NullJournal
from tests.actors.world import batch_of, plan_of
from tests.builders import node


async def test_a_changed_node_leaves_no_gap_in_the_record_numbers():
    binder = BinderActor(plan_of(shards=1), None, NullJournal())
    await binder.add_nodes(node_batch((node("n1", cpu=100),)))
    await binder.add_nodes(node_batch((node("n1", cpu=2000),)))
    pods = batch_of("a")
    await binder.add_pending(pods)

    answers = await binder.bind(BindBatch("s", 1, pods, ("n1",), ("s/1/1",)))

    assert answers.nodes == ("n1",)
    assert binder.core.halted is None
