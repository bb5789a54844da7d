"""Statuses and summaries as they travel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from roadstead.cycle.messages import (
    ClassAnswer,
    Refusal,
    WireNarrowed,
    WireStatus,
    WireSummary,
)
from roadstead.cycle.narrowing import Found
from roadstead.framework.cycle_state import Summary
from roadstead.framework.diagnosis import Diagnosis
from roadstead.framework.evaluation import Summaries
from roadstead.framework.narrowed import Narrowed
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


def merge_filters(parts: Iterable[Summaries], profile: Profile) -> dict[str, Summary]:
    """The PreFilter summaries of all shards as one, by plugin."""
    return _merged(parts, {each.name: each.merged_filter for each in profile.summarizes_filter})


def merge_scores(parts: Iterable[Summaries], profile: Profile) -> dict[str, Summary]:
    """The PreScore summaries of all shards as one, by plugin."""
    return _merged(parts, {each.name: each.merged_score for each in profile.summarizes_score})


def _merged(
    parts: Iterable[Summaries], merge: Mapping[str, Callable[[Summary, Summary], Summary]]
) -> dict[str, Summary]:
    merged: dict[str, Summary] = {}
    for part in parts:
        for name, summary in part.items():
            merged[name] = merge[name](merged[name], summary) if name in merged else summary
    return merged


def refusals_out(diagnosis: Diagnosis) -> tuple[Refusal, ...]:
    return tuple(Refusal(status_out(status), rows) for status, rows in diagnosis.refused.items())


def refusals_in(wire: Iterable[Refusal], into: Diagnosis) -> None:
    for each in wire:
        into.add(status_in(each.status), each.rows)


def narrowed_out(narrowed: Narrowed) -> WireNarrowed:
    return WireNarrowed(
        narrowed.stays.tobytes(),
        narrowed.scores.tobytes(),
        None if narrowed.seen is None else narrowed.seen.tobytes(),
        tuple((status_out(status), nodes.tobytes()) for status, nodes in narrowed.refused),
        narrowed.is_bare,
    )


def narrowed_in(wire: WireNarrowed) -> Narrowed:
    return Narrowed(
        np.frombuffer(wire.stays, np.int64),
        np.frombuffer(wire.scores, np.int64),
        None if wire.seen is None else np.frombuffer(wire.seen, np.int64),
        tuple(
            (status_in(status), np.frombuffer(nodes, np.int64)) for status, nodes in wire.refused
        ),
        wire.is_bare,
    )


def found_in(answer: ClassAnswer) -> Found:
    considered = answer.considered
    return Found(
        np.frombuffer(answer.feasible, np.int64),
        None if considered is None else np.frombuffer(considered, np.int64),
    )
