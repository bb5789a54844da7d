"""Lookup of nodes by name, by zone and by label selector, as on the command line."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Final

from roadstead.facts.node import NodeFacts, zone_text
from roadstead.facts.selectors import Requirement
from roadstead.protocol.errors import InputError, cut_short

SELECTOR_MAX_CHARS: Final = 10_000
NAMES_MAX: Final = 5
"""Maximum number of names in a hint."""

HINT_MAX_NAMES: Final = 20_000
"""Maximum number of names that are compared for a hint, which bounds its time."""

_KEY = r"[A-Za-z0-9](?:[A-Za-z0-9._/-]*[A-Za-z0-9])?"
_VALUE = r"[A-Za-z0-9._-]*"
# One requirement of a selector: `!key`, `key`, `key=value` or `key in (a,b)`, with the comma after
# it if another one follows.
_TERM: Final = re.compile(
    rf"\s*(?:"
    rf"(?P<absent>!)\s*(?P<no>{_KEY})"
    rf"|(?P<key>{_KEY})\s*(?:"
    rf"(?P<op>==|!=|=)\s*(?P<value>{_VALUE})"
    rf"|\s+?(?P<set>in|notin)\s*\((?P<values>[^()]*)\)"
    rf")?"
    rf")\s*(?:,(?=\s*\S)|$)"
)


def find_nodes(
    nodes: Sequence[NodeFacts],
    names: Sequence[str] = (),
    zones: Sequence[str] = (),
    selector: str = "",
) -> tuple[NodeFacts, ...]:
    """Return the nodes that a name, a zone or the selector names, in the order of `nodes`.

    names: of nodes, or of zones if there is no such node. zones: as reports show them, or their
    last part. selector: as kubectl accepts it: `pool=a,env!=dev,gpu,!spot,tier in (x,y)`.

    Raises:
        InputError: a name or zone that no node has, a selector that is wrong or selects nothing.
    """
    by_name = {each.name: each for each in nodes}
    chosen: set[str] = set()
    for name in names:
        if name in by_name:
            chosen.add(name)
        else:
            chosen |= _names_in_zone(nodes, name, "NODE")
    for zone in zones:
        chosen |= _names_in_zone(nodes, zone, "--zone")
    if selector:
        chosen |= _selected_names(nodes, selector)
    return tuple(each for each in nodes if each.name in chosen)


def _names_in_zone(nodes: Sequence[NodeFacts], zone: str, field: str) -> set[str]:
    """Return the names of the nodes of a zone. Raises InputError if there are none.

    field: where the zone was named; as NODE it may also have been meant as the name of a node.
    """
    # By name of the node.
    zone_of = {each.name: zone_text(each.zone) for each in nodes}
    names = {name for name, own in zone_of.items() if own and zone in (own, own.rpartition("/")[2])}
    if names:
        return names
    zones = sorted({each for each in zone_of.values() if each})
    known = zones if field == "--zone" else [*zone_of][:HINT_MAX_NAMES] + zones
    what = "zone" if field == "--zone" else "node or zone"
    raise InputError(
        f"is no {what} of the cluster{_hint(zone, known)}", field=field, value=cut_short(zone)
    )


def _hint(name: str, known: Sequence[str]) -> str:
    if not known:
        return " (it has none)"
    close = get_close_matches(name, known, n=NAMES_MAX, cutoff=0.6)
    if close:
        return f" (did you mean {', '.join(close)}?)"
    return f" (it has {', '.join(known[:NAMES_MAX])}{', …' if len(known) > NAMES_MAX else ''})"


def _selected_names(nodes: Sequence[NodeFacts], selector: str) -> set[str]:
    requirements = parse_selector(selector)
    names = {each.name for each in nodes if _matches(requirements, dict(each.labels))}
    if not names:
        raise InputError("selects no node", field="--selector", value=cut_short(selector))
    return names


def _matches(requirements: Sequence[Requirement], labels: Mapping[str, str]) -> bool:
    return all(each.matches(labels) for each in requirements)


def parse_selector(text: str) -> tuple[Requirement, ...]:
    """Parse a label selector as kubectl's `-l` does. Raises InputError.

    Upstream: apimachinery/pkg/labels/selector.go (Parse); `<` and `>` are not supported.
    """
    if len(text) > SELECTOR_MAX_CHARS:
        problem = f"is longer than {SELECTOR_MAX_CHARS:,} characters"
        raise InputError(problem, field="--selector", value=cut_short(text))
    requirements: list[Requirement] = []
    at = 0
    while at < len(text):
        match = _TERM.match(text, at)
        if match is None or match.end() == at:
            problem = "is no label selector (as pool=a,env!=dev,gpu,!spot,tier in (x,y))"
            raise InputError(problem, field="--selector", value=cut_short(text[at:]))
        requirements.append(_requirement(match))
        at = match.end()
    return tuple(requirements)


def _requirement(match: re.Match[str]) -> Requirement:
    if match["absent"]:
        return Requirement(match["no"], "DoesNotExist")
    key = match["key"]
    if match["op"]:
        return Requirement(key, "NotIn" if match["op"] == "!=" else "In", (match["value"],))
    if match["set"]:
        values = tuple(sorted({each.strip() for each in match["values"].split(",")}))
        return Requirement(key, "In" if match["set"] == "in" else "NotIn", values)
    return Requirement(key, "Exists")
