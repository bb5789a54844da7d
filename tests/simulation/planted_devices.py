"""Planted bugs in what claims of devices need; see `planted.py`."""

from dataclasses import replace

import numpy as np

from roadstead.binder import volumes as binder_volumes
from roadstead.cache import SchedulerCache
from roadstead.cache.volumes import CacheVolumes
from roadstead.cycle import scheduling_cycle
from roadstead.cycle.preempting import dry_run_to_make
from roadstead.devices import assumed, capacity
from roadstead.devices.ahead import DevicesAhead
from roadstead.devices.assumed import AssumedDevices
from roadstead.devices.counters import SharedCounters
from roadstead.devices.in_use import DevicesInUse
from roadstead.devices.room import DeviceRoom
from roadstead.devices.state import DeviceState
from roadstead.journal.files import FileJournal
from roadstead.plugins import device_filter
from roadstead.queue.events import PodEvents
from roadstead.storage.assumed_claims import AssumedClaims
from tests.simulation.planted import NETWORK, bug

AMONG = {"among": "devices"}
EVERY = (*NETWORK, "crash", "changes")


@bug(kinds=EVERY, found=2, **AMONG)
def the_binder_does_not_check_devices(put):
    put(DeviceState, "are_free", lambda self, claims: True)


@bug(found=0, **AMONG)
def devices_in_use_are_not_counted(put):
    put(DevicesInUse, "add", lambda self, allocation: None)


@bug(found=0, **AMONG)
def devices_of_ended_claims_stay_in_use(put):
    put(DevicesInUse, "remove", lambda self, allocation: None)


@bug(found=0, **AMONG)
def devices_of_placed_pods_are_allocated_again(put):
    put(DevicesAhead, "reserve", lambda self, pod, node: True)


@bug(kinds=NETWORK, found=2, **AMONG)
def forgotten_pods_keep_their_claims_in_flight(put):
    def forget(self, uid):
        self._pods.pop(uid, None)
        self._undos.pop(uid, None)
        return (), ()

    put(AssumedDevices, "forget", forget)


@bug(found=0, **AMONG)
def a_bound_pod_leaves_its_claims_in_flight(put):
    put(AssumedDevices, "confirm", lambda self, uid: ())


@bug(kinds=("crash",), found=0, **AMONG)
def a_recovered_binder_forgets_the_last_allocation(put):
    original = FileJournal.recovered_groups

    def recovered_groups(self):
        found = [record for group in original(self) for record in group]
        of_devices = (
            n for n, each in enumerate(found) if getattr(each.subject, "device_claims", ())
        )
        last = max(of_devices, default=None)
        yield [each for n, each in enumerate(found) if n != last]

    put(FileJournal, "recovered_groups", recovered_groups)


@bug(kinds=EVERY, found=0, **AMONG)
def claims_outlive_their_pods(put):
    put(AssumedClaims, "release", lambda self, uids: ())


@bug(found=0, **AMONG)
def a_shared_claim_names_its_first_pod_alone(put):
    original = assumed.reserved

    def reserved(claim, consumer):
        found = original(claim, consumer)
        return replace(found, reserved_for=claim.reserved_for or found.reserved_for)

    put(assumed, "reserved", reserved)


@bug(found=0, **AMONG)
def a_node_need_not_reach_allocated_devices(put):
    for module in (assumed, device_filter):
        put(module, "is_reachable", lambda terms, name, labels: True)
    everywhere = lambda self, claims, table: np.ones(len(table), np.bool_)  # noqa: E731
    put(device_filter.DeviceFilter, "available", everywhere)


@bug(found=2, **AMONG)
def counters_are_never_short(put):
    put(SharedCounters, "consume", lambda self, device: True)
    put(SharedCounters, "give_back", lambda self, device: None)


@bug(found=4, **AMONG)
def a_capacity_is_never_short(put):
    put(capacity, "fits", lambda *what: True)
    put(DeviceRoom, "suffices", lambda self, results, in_use: True)


@bug(found=0, **AMONG)
def a_deallocated_claim_keeps_its_allocation_at_the_cache(put):
    put(SchedulerCache, "deallocate", lambda self, claims: None)


@bug(kinds=("changes",), **AMONG)
def devices_that_are_free_again_wake_nobody(put):
    put(PodEvents, "_claims_freed", lambda self, pods, spares_gangs: iter(()))


@bug(**AMONG)
def a_claim_that_is_no_longer_in_flight_wakes_nobody(put):
    put(PodEvents, "_claims_written", lambda self, pods: iter(()))


@bug(kinds=(*EVERY, "late", "disk"), seed=1020, found=1023, **AMONG)
def a_new_cache_with_changes_ignores_those_of_commits(put):
    def load(self, changes):
        if not self.log:
            self.apply(changes)

    put(CacheVolumes, "load", load)


@bug(seed=1010, found=1015, **AMONG)
def post_filter_of_claims_runs_when_the_attempt_is_reported(put):
    original = scheduling_cycle.after_failure

    def after_failure(decision, profile, tie_break, batch, extenders):
        found = decision.diagnosis
        if found is None or dry_run_to_make(profile, decision.pod, found, tie_break) is None:
            return decision, False
        return (yield from original(decision, profile, tie_break, batch, extenders))

    put(scheduling_cycle, "after_failure", after_failure)


@bug(seed=1000, found=1005, **AMONG)
def a_claim_may_have_any_number_of_consumers(put):
    put(binder_volumes, "reservation_error", lambda claims, pod: "")


@bug(seed=1000, found=1015, **AMONG)
def a_reported_failure_of_a_device_is_ignored(put):
    put(device_filter, "has_failed", lambda claim, now_ms: False)
