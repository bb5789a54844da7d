"""Bench sessions over all actors in this process."""

import asyncio
from dataclasses import replace

from roadstead.actors.runs.bench_run import BenchRun
from roadstead.actors.runs.launch import ActorLauncher, open_runtime
from roadstead.actors.runs.session import RunSession
from roadstead.actors.supervisor.supervisor import Supervisor
from roadstead.bench.script import Script
from tests.actors.world import GENEROUS_S, plan_of, record_actors


def with_session(work, plan=None):
    """Call work(session, actors by name) on running actors; return its result."""
    plan = plan or plan_of(batch=8)

    async def do():
        runtime = open_runtime(plan)
        actors = record_actors(runtime)
        supervisor = Supervisor(runtime, plan)
        await supervisor.start()
        try:
            return await work(RunSession(supervisor, plan), actors)
        finally:
            await supervisor.stop()

    return asyncio.run(asyncio.wait_for(do(), GENEROUS_S))


def bench(*steps, plan=None, timeout_s=GENEROUS_S, seen=None, **script):
    """Run steps; return (the measurements, the actors at the end)."""
    made = Script("test", steps, **script)
    plan = replace(plan or plan_of(batch=8), cluster=made.cluster)

    async def work(session, actors):
        report = seen.append if seen is not None else lambda progress: None
        run = BenchRun(session, made, report, timeout_s=timeout_s)
        return await run.run(), actors

    return with_session(work, plan)


def launched(script, **settings):
    """Run a script as the command line does; return its outcome."""
    plan = replace(plan_of(**settings), cluster=script.cluster)
    launcher = ActorLauncher()
    return launcher.bench(script, plan, lambda progress: None, timeout_s=GENEROUS_S)
