"""Checks at the end of a run: of a run that finished, and of one that could not."""

import asyncio
import random

from roadstead.actors.interface import NOTHING
from roadstead.actors.names import BINDER
from roadstead.journal.records import JournalError
from roadstead.journal.segments import Reader, is_closed
from tests.simulation import (
    devices_sabotage,
    older,
    ramble_attempts,
    ramble_binder,
    ramble_cache,
    ramble_cycle,
    ramble_decisions,
    ramble_held,
    ramble_policies,
    ramble_queue,
    ramble_reports,
    ramble_slices,
    ramble_stream,
    reborn,
    senseless,
)
from tests.simulation.checks import problems_of, problems_of_journal
from tests.simulation.damage import judged, read, unnoticed
from tests.simulation.devices import without_claims
from tests.simulation.disk_faults import rot
from tests.simulation.real_disk import differences
from tests.simulation.sabotage import unreported


def ended(run, room_bytes, failure):
    """A run that ends early reports why, and its acknowledged binds are on the disk."""
    disk, text = run.disk, str(failure)
    if room_bytes is not None and "No space left on device" in text:
        run.network.record_fault("full disk")
    elif disk.lied and "damaged at offset" in text:
        run.network.record_fault("damage found")
        return []
    elif disk.met and "nothing more is acknowledged" in text:
        run.network.record_fault("failed disk")
    else:
        return [f"the run ended: {type(failure).__name__}: {text}"]
    disk.fault = None
    return problems_of_journal(disk, run.heard)


async def checked(run, seed):
    """Return the violations of a run that finished."""
    disk, actors = run.disk, run.process.actors
    problems = list(run.watch.problems) if run.watch else []
    problems += run.shadow_problems()
    disk.fault = None
    if disk.lied:
        found = read(disk.contents, {})
        problems += [] if found == judged(disk.contents) else ["I9: rot is judged otherwise"]
        if found is None:
            run.network.record_fault("damage found")
            return problems
    elif seed % 2:
        try:
            await actors[BINDER].stop(NOTHING)
        except JournalError as failure:
            # This check finds what its last write left out.
            return problems + ended(run, None, failure)
        problems += [] if is_closed(disk) else ["the journal of a run that ended has no end"]
    problems += problems_of(run.scenario, actors, disk, run.heard, run.kept)
    if not disk.lied:
        limits, core = run.scenario.limits, actors[BINDER].core
        problems += reborn.problems_of(run.process.plan, disk, limits, core)
        problems += unnoticed(disk, seed)
        problems += unreported(list(Reader(disk).records()), seed)
        problems += devices_sabotage.unreported(list(Reader(disk).records()), seed)
        problems += _of_other_journals(disk, seed)
    return problems


async def rambled(run, queue, drawn, core=None):
    """Return the violations of cores that are called at random, on the inputs of the run.

    queue: the run's last queue. The run's actors have ended: their remaining work would otherwise
    run between these calls, on a stopped disk. core: only this one's, a name of `_rambles`.
    """
    problems = []
    for name, ramble in _rambles(run, queue, drawn).items():
        if core in (None, name):
            found = ramble()
            problems += await found if asyncio.iscoroutine(found) else found
    return problems


def _rambles(run, queue, drawn):
    """Return core → function that calls it at random. Each draws by itself."""
    plan, whole = run.process.plan, run.scenario
    # Most of these cores get no claims of devices: their models do not follow them.
    scenario = without_claims(whole)
    rambles = {
        "queue": lambda: ramble_queue.problems_of(queue, scenario, drawn),
        "reports": lambda: ramble_reports.problems_of(plan, scenario, drawn),
        "cache": lambda: ramble_cache.problems_of(plan, whole, drawn),
        "stream": lambda: ramble_stream.problems_of(plan, whole, drawn),
        "attempts": lambda: ramble_attempts.problems_of(plan, scenario, drawn),
        "cycle": lambda: ramble_cycle.problems_of(drawn),
        "decisions": lambda: ramble_decisions.problems_of(plan, scenario, drawn),
        "held": lambda: ramble_held.problems_of(plan, scenario, drawn),
        "policies": lambda: ramble_policies.problems_of(plan, scenario, drawn),
        "slices": lambda: ramble_slices.problems_of(plan, whole, drawn),
    }
    if not run.disk.lied:
        copy, limits = reborn.copy_of(run.disk), scenario.limits
        rambles["binder"] = lambda: ramble_binder.problems_of(plan, whole, copy, limits, drawn)
    return rambles


async def rotting(run, seed):
    """Corrupt bytes of the disk once during the run."""
    fault = run.disk.fault
    if fault is not None and fault.kind == "rot":
        await asyncio.sleep(fault.at_s)
        if rot(run.disk, seed):
            run.network.record_fault("rot")


def _of_other_journals(disk, seed):
    """The same records as other releases write them, and on a disk of the operating system."""
    yield from differences(disk.contents)
    if not any(name.endswith(".snapshot") for name in disk.names()):
        records = list(Reader(disk).records())
        yield from older.problems_of(records, seed)
        yield from senseless.problems_of(records, random.Random(f"senseless {seed}"))
