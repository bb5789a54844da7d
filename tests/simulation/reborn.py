"""Every run ends with a recovery or two: binders built from copies of its disk.

One from the journal as it is, one from a snapshot of that. Each is compared with the replay of
plain records, like every life, and both with the binder that wrote them.
"""

import gc
from dataclasses import replace

from roadstead.actors.binder.actor import BinderActor
from roadstead.binder import BinderCore
from roadstead.binder.recovery import recover, snapshot_records, split_by_kind
from roadstead.journal.segments import Reader
from roadstead.placements import TableStore
from roadstead.protocol.status import SUCCESS
from tests.journal.simulated_disk import SimulatedDisk
from tests.simulation.shadow_journal import ShadowJournal, WatchedJournal
from tests.simulation.shadow_life import ShadowLife


def copy_of(disk):
    """A disk with the same files, all of them durable."""
    copy = SimulatedDisk(short_writes=0.0)
    copy.contents = dict(disk.contents)
    copy.durable = {name: len(data) for name, data in copy.contents.items()}
    copy.lasting = set(copy.contents)
    return copy


def problems_of(plan, disk, limits, core):
    """Return the differences between a binder's core and the cores recovered from its disk."""
    problems, beside, copy = [], [], copy_of(disk)
    # A snapshot may be due at once.
    shadow = ShadowJournal.begun(copy, replace(limits, snapshot_bytes=-1), problems)
    for what in ("its journal", "a snapshot"):
        for records in (list(Reader(copy).records()), []):
            problems += _of_records(records, core.settings)
        journal = WatchedJournal(copy, shadow, segment_bytes=limits.segment_bytes)
        actor = BinderActor(plan, None, journal)
        ShadowLife(actor, plan, shadow, problems)
        for name, here, there in _differing(actor.core, core):
            problems.append(f"recovered from {what}: {name} is {here}, not {there}")
        actor.core.validate()
        beside.append(actor.binder.journal.snapshot_extras())
        if what == "its journal":
            journal.snapshot(snapshot_records(actor.core, actor.binder.journal.snapshot_extras()))
        journal.close()
    before, after = beside
    for name in ("nodes", "pods", "removed", "subjects"):
        here, there = getattr(after, name), getattr(before, name)
        if here != there:
            problems.append(f"I4: a snapshot changes what is known of {name}: {here}, not {there}")
    return problems[:3]


def _of_records(records, settings):
    """Yield differences of a core recovered from the records: their number, and the last one."""
    core = BinderCore(TableStore(), lambda request: SUCCESS, settings, journals_all=True)
    gc.enable()
    found = recover(core, split_by_kind([records]) if records else [])
    if not gc.isenabled():
        yield "behind a recovery no garbage is collected"
    last_lsn = max((each.lsn for each in records), default=0)
    here, there = (found.records, core.last_lsn, core.flushed_lsn), (len(records), *[last_lsn] * 2)
    if here != there:
        yield f"{here} are recovered, not {there}"


def _differing(core, before):
    """Yield differences in all state but versions and refused requests."""
    for name, actual in (
        ("nodes", lambda each: dict(each.placements.nodes)),
        ("void tokens", lambda each: list(each._voided)),
        ("gone", lambda each: set(each.pods.ended)),
    ):
        if actual(core) != actual(before):
            yield name, actual(core), actual(before)
    # An epoch without binds or fences is in no journal; the others are compared with the replay of
    # its records.
    beyond = {k: e for k, e in core._epochs.items() if e > before._epochs.get(k, -1)}
    if beyond:
        yield "epochs", beyond, before._epochs
    if core.pods.present.keys() != before.pods.present.keys():
        yield "pods", sorted(core.pods.present), sorted(before.pods.present)
    for uid in core.pods.present.keys() & before.pods.present.keys():
        here, there = _contents(core.pods.present[uid]), _contents(before.pods.present[uid])
        if here != there:
            yield uid, here, there


def _contents(pod):
    by = pod.token, pod.owner, pod.epoch
    return pod.state, pod.key, pod.node_name, *by, pod.lsn, pod.facts
