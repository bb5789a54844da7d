"""Statuses and summaries as they travel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from roadstead.cycle.messages import Refusal, WireStatus, WireSummary
from roadstead.framework.cycle_state import Summary
from roadstead.framework.diagnosis import Diagnosis
from roadstead.framework.evaluation import Summaries
from roadstead.framework.profile import Profile
from roadstead.protocol.codec import from_wire, pack, to_wire, unpack
from roadstead.protocol.status import Code, Status


def status_out(status: Status) -> WireStatus:
    return WireStatus(int(status.code), status.reasons, status.plugin)


def status_in(wire: WireStatus) -> Status:
    return Status(Code(wire.code), wire.reasons, wire.plugin)


def summaries_out(summaries: Summaries) -> tuple[WireSummary, ...]:
    return tuple((name, pack(to_wire(each))) for name, each in sorted(summaries.items()))


def filters_in(wire: Iterable[WireSummary], profile: Profile) -> dict[str, Summary]:
    """Summaries of PreFilter; their types are what the profile's plugins say, never the wire."""
    return _in(wire, {each.name: each.filter_summary_type for each in profile.summarizes_filter})


def scores_in(wire: Iterable[WireSummary], profile: Profile) -> dict[str, Summary]:
    """Summaries of PreScore and Score."""
    return _in(wire, {each.name: each.score_summary_type for each in profile.summarizes_score})


def _in(wire: Iterable[WireSummary], types: Mapping[str, type[Summary]]) -> dict[str, Summary]:
    return {name: from_wire(types[name], unpack(data)) for name, data in wire}


def merge(parts: Iterable[Summaries]) -> dict[str, Summary]:
    """The summaries of all shards as one, by plugin."""
    merged: dict[str, Summary] = {}
    for part in parts:
        for name, summary in part.items():
            merged[name] = merged[name].merge(summary) if name in merged else summary
    return merged


def refusals_out(diagnosis: Diagnosis) -> tuple[Refusal, ...]:
    return tuple(
        Refusal(status_out(status), rows, with_victims)
        for status, (rows, with_victims) in diagnosis.refused.items()
    )


def refusals_in(wire: Iterable[Refusal], into: Diagnosis) -> None:
    for each in wire:
        into.add(status_in(each.status), each.rows, each.with_victims)
