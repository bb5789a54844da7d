import asyncio
import json
from dataclasses import replace

import pytest

from roadstead.actors.cache.actor import CacheActor
from roadstead.actors.drive import drive
from roadstead.actors.interface import NOTHING, ActorError, ActorLostError, DeadlineError
from roadstead.actors.messages import Leased, Renewed, RunningPods, UpdateAssumptions, node_batch
from roadstead.actors.names import BINDER, CACHE, QUEUE
from roadstead.actors.scheduler.actor import SchedulerActor
from roadstead.actors.scheduler.peers import Peers
from roadstead.attempts.commands import PodReport, ReportKind, SendReports
from roadstead.binder.answers import BindAnswer
from roadstead.cache.answers import CacheAnswer
from roadstead.config.settings import Bounds
from roadstead.facts.pod import GroupMembership
from roadstead.queue.reports import PendingReason
from tests.actors.world import SERVED, Fake, Fakes, batch_of, bind_answers, plan_of, turns, until
from tests.builders import node, pod
from tests.inside import scheduler_of
from tests.simulation.scenarios import GANGS

ONE_NODE = (node("n1"),)


async def never(_):
    await asyncio.Event().wait()


def bound_all(batch):
    """Return the binder's answer that commits the whole batch."""
    return answers_to(batch, "")


def answers_to(batch, cause, *reasons):
    rows = zip(batch.tokens, batch.pods.uids, batch.nodes, strict=True)
    return bind_answers(
        [
            BindAnswer(token, uid, "" if cause else name, 0, 0, cause, reasons)
            for token, uid, name in rows
        ]
    )


class World:
    """One scheduler with a real cache; a test sets the answers of queue and binder."""

    def __init__(self, *leases, facts=None, nodes=ONE_NODE, **settings):
        self.leases = [
            Leased(number, batch_of(*names, facts=facts), (1,) * len(names), (1,) * len(names))
            for number, names in enumerate(leases, start=1)
        ]
        self.nodes = nodes
        self.log = []
        self.plan = plan_of(**settings)
        self.feed = Fake("scheduler-0")
        self.counts = CacheActor(self.plan, Fakes(self.feed))
        self.queue = self.fake(QUEUE, lease=self.lease, report=NOTHING)
        self.cache = self.fake(
            CACHE, assume=self.counts.assume, update_assumptions=self.counts.update_assumptions
        )
        self.binder = self.fake(BINDER, bind=bound_all)
        directory = Fakes(self.queue, self.cache, self.binder)
        self.scheduler = SchedulerActor("scheduler-0", self.plan, directory)
        self.feed.answers["apply"] = self.scheduler.apply

    def fake(self, name, **answers):
        fake = Fake(name, **answers)
        fake.calls = _Logged(self.log, name)
        return fake

    async def __aenter__(self):
        await self.counts.add_nodes(node_batch(self.nodes))
        await self.scheduler.run(NOTHING)
        return self

    async def __aexit__(self, *_):
        await self.scheduler.stop(NOTHING)
        self.counts.release()
        self.scheduler.core.validate()

    def lease(self, ask):
        return self.leases.pop(0) if self.leases else never(ask)

    async def reports(self, count=1):
        """Wait for the first reports to the queue and return them."""
        await until(lambda: len(self.queue.received("report")) >= count or self.scheduler.failure)
        if self.scheduler.failure is not None:
            raise self.scheduler.failure
        return self.queue.received("report")

    async def error(self):
        """Wait until the scheduler fails; return its status with the error."""
        await until(lambda: self.scheduler.failure is not None)
        return await self.scheduler.status(NOTHING)


class _Logged(list):
    """The calls of a fake, which are also added to the common log."""

    def __init__(self, log, name):
        super().__init__()
        self.log, self.name = log, name

    def append(self, call):
        super().append(call)
        self.log.append(f"{self.name} {call[0]}")


async def test_a_pod_is_assumed_then_bound_then_confirmed_then_done():
    async with World(["a"]) as world:
        (report,) = await world.reports()

    steps = [step for step in world.log if step.split()[1] != "lease"]
    assert steps == [
        "cache update_assumptions",
        "cache assume",
        "binder bind",
        "cache update_assumptions",
        "queue report",
    ]
    assert (report.lease_id, report.bound, report.returned) == (1, ("uid-a",), ())


async def test_a_lease_request_names_waiting_gangs_and_the_answer_counts_their_bound_pods():
    member = pod(cpu=100, pod_group=GroupMembership("g", 3))
    world = World(["a"], ["b"], facts=member, config=json.dumps(GANGS), batch=1)
    world.leases[1] = replace(world.leases[1], gangs=(("default", "g", 1),))

    world.queue.answers["renew"] = Renewed(())
    async with world:
        reports = await world.reports(2)

    first, second, *_ = world.queue.received("lease")
    assert (first.gangs, second.gangs) == ((), (("default", "g"),))
    assert {each.bound for each in reports} == {("uid-a",), ("uid-b",)}


async def test_cache_binder_and_queue_get_the_same_attempt_on_the_same_node():
    async with World(["a", "b"]) as world:
        await world.reports()

    (assume,) = world.cache.received("assume")
    (bind,) = world.binder.received("bind")
    nothing, confirm = world.cache.received("update_assumptions")
    assert nothing == UpdateAssumptions((), (), ())
    assert assume.bind_next
    assert assume.nodes == bind.nodes == ("n1", "n1")
    assert assume.tokens == bind.tokens
    assert assume.pods == bind.pods
    assert confirm.confirm == ("uid-a", "uid-b")
    assert (bind.owner, bind.epoch) == ("scheduler-0", 1)


async def test_the_next_batch_counts_assumed_pods():
    async with World(["a"], ["b"], facts=pod(cpu=3000)) as world:
        reports = await world.reports(2)

    assert [each.uid for report in reports for each in report.returned] == ["uid-b"]
    assert [report.bound for report in reports if report.bound] == [("uid-a",)]


async def test_a_pod_without_a_node_is_returned_with_its_reasons():
    async with World(["a"], facts=pod(cpu=9000)) as world:
        (report,) = await world.reports()

    (back,) = report.returned
    (note,) = report.pending_reasons
    assert (back.uid, back.reason, back.rejected_by) == (
        "uid-a",
        "unschedulable",
        ("NodeResourcesFit",),
    )
    assert note.key == "default/a"
    assert note.message.startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert note.reasons == (("Insufficient cpu", 1),)
    assert world.cache.received("assume") == world.binder.calls == []


async def test_an_assumption_refused_by_the_cache_is_returned_as_a_conflict():
    world = World(["a", "b"])
    world.cache.answers["assume"] = lambda batch: CacheAnswer(((batch.tokens[0], "was faster"),), 0)
    async with world:
        reports = await world.reports(2)

    ((back,),) = [report.returned for report in reports if report.returned]
    assert (back.uid, back.reason) == ("uid-a", "conflict")
    assert world.binder.received("bind")[0].pods.uids == ("uid-b",)


@pytest.mark.parametrize("cause", ["constraint", "unknown_node", "busy"])
async def test_pods_refused_by_the_binder_are_forgotten_and_tried_again(cause):
    world = World(["a"])
    world.binder.answers["bind"] = lambda batch: answers_to(batch, cause, "Insufficient cpu")
    async with world:
        (report,) = await world.reports()

    (back,) = report.returned
    assert (back.uid, back.reason) == ("uid-a", "conflict")
    (token,) = world.binder.received("bind")[0].tokens
    assert world.cache.received("update_assumptions")[-1].forget == (("uid-a", token),)
    assert back.freed
    assert world.log.index("queue report") > world.log.index("binder bind")
    assert world.log[world.log.index("queue report") - 1] == "cache update_assumptions"


async def test_a_pod_bound_by_another_scheduler_is_done():
    world = World(["a"])
    world.binder.answers["bind"] = lambda batch: answers_to(batch, "already_bound")
    async with world:
        (report,) = await world.reports()

    assert report.bound == ("uid-a",)
    assert world.cache.received("update_assumptions")[-1].forget


async def test_a_deleted_pod_is_forgotten_and_not_reported():
    world = World(["a"], ["b"])
    world.binder.answers["bind"] = lambda batch: answers_to(
        batch, "deleted" if batch.pods.uids == ("uid-a",) else ""
    )
    async with world:
        await until(lambda: any(each.forget for each in world.cache.received("update_assumptions")))
        reports = await world.reports()

    assert [report.bound for report in reports] == [("uid-b",)]


async def test_any_other_refusal_of_the_binder_fails_the_attempt_with_its_cause():
    world = World(["a"])
    world.binder.answers["bind"] = lambda batch: answers_to(batch, "stale_epoch", "come later")
    async with world:
        (report,) = await world.reports()

    assert [back.reason for back in report.returned] == ["error"]
    assert [note.message for note in report.pending_reasons] == ["stale_epoch, come later"]


async def test_a_late_binder_gets_the_same_tokens_again():
    outcomes = [DeadlineError("binder did not answer"), DeadlineError("nor this time"), None]
    world = World(["a", "b"])
    world.binder.answers["bind"] = lambda batch: outcomes.pop(0) or bound_all(batch)
    async with world:
        (report,) = await world.reports()

    binds = world.binder.received("bind")
    assert [each.number for each in binds] == [1, 2, 3]
    first, second, third = (replace(each, number=0) for each in binds)
    assert first == second == third
    assert report.bound == ("uid-a", "uid-b")
    assert not any(binds.forget for binds in world.cache.received("update_assumptions"))


async def test_pods_that_one_evaluation_can_not_decide_are_evaluated_again():
    alone = pod(cpu=3000)
    async with World(["a", "b", "c"], facts=alone, nodes=(node("n1"), node("n2"))) as world:
        reports = await world.reports(2)

    done = [uid for report in reports for uid in report.bound]
    back = [each.uid for report in reports for each in report.returned]
    assert sorted(done + back) == ["uid-a", "uid-b", "uid-c"]
    assert back == ["uid-c"]


async def test_answers_are_handled_between_many_decisions():
    names = [f"p{number}" for number in range(150)]
    async with World(names, facts=pod(cpu=1), nodes=(node("n1", pods=200),)) as world:
        await until(lambda: sum(len(each.bound) for each in world.queue.received("report")) == 150)

    assert len(world.cache.received("assume")) == 1


async def test_a_lease_request_has_the_batch_size_and_waits_briefly():
    async with World(batch=7) as world:
        await until(lambda: world.queue.received("lease"))

    ask = world.queue.received("lease")[0]
    assert (ask.owner, ask.epoch, ask.max_pods) == ("scheduler-0", 1, 7)
    assert ask.wait_s > 0


async def test_a_lease_without_pods_is_requested_again():
    world = World([])
    world.leases = [Leased(0, batch_of(), (), ()), *World(["a"]).leases]
    async with world:
        assert [report.bound for report in await world.reports()] == [("uid-a",)]


async def test_the_number_of_batches_at_the_binder_is_bounded():
    world = World(["a"], ["b"], ["c"], bounds=Bounds(inflight_max_batches=1))
    gate = asyncio.Event()
    at_binder = []

    async def bind(batch):
        at_binder.append(batch)
        await gate.wait()
        return bound_all(batch)

    world.binder.answers["bind"] = bind
    async with world:
        await until(lambda: len(world.cache.received("assume")) == 3)
        await turns()
        assert len(at_binder) == 1
        gate.set()
        reports = await world.reports(3)

    assert [report.bound for report in reports] == [("uid-a",), ("uid-b",), ("uid-c",)]


async def test_decisions_continue_while_binds_are_in_progress():
    world = World(["a"], ["b"])
    world.binder.answers["bind"] = never
    async with world:
        await until(lambda: len(world.binder.received("bind")) == 2)

        status = await world.scheduler.status(NOTHING)
        assert status.text == "had decided 2 batches and bound 0 pods; 2 pods were under way"


async def test_an_unsupported_feature_stops_the_scheduler_with_plugin_object_and_field():
    facts = pod(others={"example.com/gpu": 1})
    gates = {"DRAExtendedResource": True}
    async with World(["a"], facts=facts, featureGates=gates, cluster=SERVED) as world:
        status = await world.error()

    assert status.error_kind == "UnsupportedError"
    plugin, obj, field = status.error_parts
    assert (plugin, obj) == ("DynamicResources", 'Pod "default/a"')
    assert field == "spec.containers: example.com/gpu with DRAExtendedResource"
    assert world.queue.received("report") == []


@pytest.mark.parametrize(
    ("actor", "method"),
    [("queue", "lease"), ("cache", "assume"), ("cache", "update_assumptions")],
)
async def test_a_lost_actor_stops_the_scheduler(actor, method):
    world = World(["a"])
    getattr(world, actor).answers[method] = ActorLostError("it is gone")
    async with world:
        status = await world.error()

    assert (status.error_kind, status.error) == ("ActorLostError", "it is gone")


@pytest.mark.parametrize(("actor", "method"), [("binder", "bind"), ("queue", "report")])
async def test_an_actor_lost_during_binding_stops_the_run_as_well(actor, method):
    world = World(["a"])
    getattr(world, actor).answers[method] = ActorLostError("it is gone")
    async with world:
        status = await world.error()

    assert (status.error_kind, status.error) == ("ActorLostError", "it is gone")


async def test_the_first_failure_is_reported():
    outcomes = [ActorError("first"), ActorError("second")]
    world = World(["a"], ["b"])
    world.binder.answers["bind"] = lambda _: outcomes.pop(0)
    async with world:
        await until(lambda: not outcomes)
        await turns()
        status = await world.error()

    assert status.error == "first"


async def test_a_batch_whose_changes_do_not_arrive_in_time_begins_again():
    world = World(["a"], deadlines={"call_s": 0.02})
    there = asyncio.Event()
    bound_meanwhile = []

    async def late(batch):
        if batch.unpacked().kinds:
            await there.wait()
        return await world.scheduler.apply(batch)

    async def update(message):
        if not bound_meanwhile:
            bound_meanwhile.append(
                await world.counts.add_running(RunningPods(batch_of("r"), ("n1",)))
            )
        return await world.counts.update_assumptions(message)

    async def apply_late(batch):
        asyncio.create_task(late(batch))  # noqa: RUF006
        return NOTHING

    world.feed.answers["apply"] = apply_late
    world.cache.answers["update_assumptions"] = update
    async with world:
        await until(lambda: world.scheduler.metrics.reads > 1)
        there.set()
        (report,) = await world.reports()

    assert report.bound == ("uid-a",)
    assert not (await world.scheduler.status(NOTHING)).error


async def test_a_second_call_of_run_has_no_effect():
    async with World(["a"]) as world:
        await world.scheduler.run(NOTHING)
        reports = await world.reports()

    assert [report.bound for report in reports] == [("uid-a",)]


async def test_a_stopped_scheduler_leases_no_more_pods_and_leaves_no_task_behind():
    before = asyncio.all_tasks()
    world = World(["a"])
    world.binder.answers["bind"] = never
    async with world:
        await until(lambda: world.binder.received("bind"))
    leases = len(world.queue.received("lease"))
    await turns()

    assert asyncio.all_tasks() == before
    assert len(world.queue.received("lease")) == leases
    assert (await world.scheduler.status(NOTHING)).error == ""


async def test_a_scheduler_that_never_ran_can_be_stopped():
    assert await World().scheduler.stop(NOTHING) == NOTHING


async def test_pending_reasons_reach_the_queue_without_a_lease():
    world = World()
    report = PodReport("uid-a", "default/a", ReportKind.WARNING, "running PostBind plugin failed")

    steps = scheduler_of(world.scheduler).performer.perform([SendReports((report,))])
    await drive(steps, Peers("scheduler-0", 1, Fakes(world.queue), 30.0).handle)

    (sent,) = world.queue.received("report")
    assert (sent.lease_id, sent.bound, sent.returned) == (0, (), ())
    assert sent.pending_reasons == (PendingReason("uid-a", "default/a", report.message, (), ()),)


async def test_status_reports_the_decisions_and_the_time_of_each_phase():
    async with World(["a"], ["b"], kernel=False) as world:
        await world.reports(2)
        status = await world.scheduler.status(NOTHING)

    assert status.text == "had decided 2 batches and bound 2 pods; 0 pods were under way"
    assert dict(status.counts) == {"batches": 2, "bound": 2}
    assert {"lease", "evaluate", "decide", "assume", "bind", "report"} == dict(
        status.timings_s
    ).keys()
