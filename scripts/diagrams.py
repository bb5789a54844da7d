#!/usr/bin/env python3
"""Diagrams of the state machines, drawn from their tables into docstrings and docs.

    scripts/diagrams.py            draws them again where they differ from the tables
    scripts/diagrams.py --check    prints what differs, changes nothing; status 1 if anything does

In a docstring a diagram is the indented block below the line `TITLE`. In `docs/state-machines.md`
it is the text between `<!-- NAME: ... -->` and `<!-- end of NAME -->`. The words around it are
written by hand.
"""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from roadstead.attempts.pods import TABLE as ATTEMPTS  # noqa: E402
from roadstead.binder.pods import TABLE as BINDER  # noqa: E402
from roadstead.cache.pods import TABLE as CACHE  # noqa: E402
from roadstead.journal_copy.receiver import TABLE as COPY_RECEIVER  # noqa: E402
from roadstead.journal_copy.sender import TABLE as COPY_SENDER  # noqa: E402
from roadstead.queue.queue_store import TABLE as QUEUE  # noqa: E402
from roadstead.simulator.nodes.health import TABLE as NODE_HEALTH  # noqa: E402
from roadstead.simulator.simulated_pods import TABLE as POD_LIFE  # noqa: E402
from roadstead.sweeps.tasks import TABLE as SWEEP  # noqa: E402
from roadstead.transitions import TransitionTable  # noqa: E402

PAGE = "docs/state-machines.md"
TITLE = "States and events, as `scripts/diagrams.py` draws them from `{table}`:"
INDENT, GAP, WIDTH = "    ", "   ", 100

Table = TransitionTable[Any, Any]


@dataclass(frozen=True, slots=True)
class Machine:
    """A state machine: its table, its name on the page, and the file whose docstring shows it."""

    name: str
    table_name: str
    table: Table
    file: str


MACHINES = (
    Machine("queue", "queue.queue_store.TABLE", QUEUE, "roadstead/queue/__init__.py"),
    Machine("attempts", "attempts.pods.TABLE", ATTEMPTS, "roadstead/attempts/core.py"),
    Machine("cache", "cache.pods.TABLE", CACHE, "roadstead/cache/__init__.py"),
    Machine("binder", "binder.pods.TABLE", BINDER, "roadstead/binder/__init__.py"),
    Machine("sweep", "sweeps.tasks.TABLE", SWEEP, "roadstead/sweeps/__init__.py"),
    Machine(
        "sender of a journal copy",
        "journal_copy.sender.TABLE",
        COPY_SENDER,
        "roadstead/journal_copy/sender.py",
    ),
    Machine(
        "receiver of a journal copy",
        "journal_copy.receiver.TABLE",
        COPY_RECEIVER,
        "roadstead/journal_copy/receiver.py",
    ),
    Machine(
        "pod life",
        "simulator.simulated_pods.TABLE",
        POD_LIFE,
        "roadstead/simulator/simulated_pods.py",
    ),
    Machine(
        "node health",
        "simulator.nodes.health.TABLE",
        NODE_HEALTH,
        "roadstead/simulator/nodes/health.py",
    ),
)


class MarkError(Exception):
    """A file lacks the marks around a diagram."""


def states_of(table: Table) -> list[StrEnum]:
    """Return all states of a machine, in the order of their enum."""
    first, _, _ = next(iter(table))
    return list(type(first))


def arrows_from(table: Table, state: StrEnum) -> list[tuple[str, StrEnum]]:
    """Return a state's events, joined by target state; those that keep the state last."""
    by_target: dict[StrEnum, list[StrEnum]] = {}
    for start, event, target in table:
        if start is state:
            by_target.setdefault(target, []).append(event)
    states = states_of(table)
    targets = sorted(by_target, key=lambda to: (to is state, states.index(to)))
    return [(_joined(by_target[target]), target) for target in targets]


def _joined(events: list[StrEnum]) -> str:
    order = list(type(events[0]))
    return ", ".join(event.value for event in sorted(events, key=order.index))


def text_of(table: Table) -> str:
    """Return a docstring's diagram: a line of arrows per state; `↺` leads back to the state."""
    states = states_of(table)
    column = max(len(state.name) for state in states) + 1
    lines: list[str] = []
    for state in states:
        parts = [
            f"↺ {events}" if target is state else f"── {events} ──► {target.name}"
            for events, target in arrows_from(table, state)
        ]
        lines += _wrapped(INDENT + state.name.ljust(column), parts or ["(no event is allowed)"])
    return "".join(f"{line}\n" for line in lines)


def _wrapped(head: str, parts: list[str]) -> Iterator[str]:
    """Yield the head followed by the parts, wrapped below it if a line would be too long."""
    line, *rest = (head + parts[0], *parts[1:])
    for part in rest:
        if len(line) + len(GAP) + len(part) <= WIDTH:
            line += GAP + part
        else:
            yield line
            line = " " * len(head) + part
    yield line


def mermaid_of(table: Table) -> str:
    """Return the diagram of the page, in Mermaid."""
    states = states_of(table)
    lines = ["stateDiagram-v2", f"{INDENT}[*] --> {states[0].name}"]
    for state in states:
        arrows = arrows_from(table, state)
        lines += [f"{INDENT}{state.name} --> {to.name}: {events}" for events, to in arrows]
        if not arrows:
            lines.append(f"{INDENT}{state.name} --> [*]")
    return "".join(f"{line}\n" for line in ("```mermaid", *lines, "```"))


def with_docstring(machine: Machine, source: str) -> str:
    """Return a module's source with the diagram in its docstring redrawn."""
    title = TITLE.format(table=machine.table_name)
    block = rf"(^{re.escape(title)}\n\n)(?:{INDENT}.*\n)*"
    return _replaced(machine, source, block, text_of(machine.table), machine.file)


def with_diagram(machine: Machine, page: str) -> str:
    """Return the page with the diagram of one machine redrawn."""
    name = re.escape(machine.name)
    block = rf"(^<!-- {name}: .* -->\n)(?:(?!<!-- end of ).*\n)*(?=<!-- end of {name} -->$)"
    return _replaced(machine, page, block, mermaid_of(machine.table), PAGE)


def _replaced(machine: Machine, text: str, block: str, diagram: str, place: str) -> str:
    drawn, count = re.subn(block, lambda found: found[1] + diagram, text, flags=re.MULTILINE)
    if count != 1:
        raise MarkError(f"{place}: the marks for the diagram of {machine.name} stand {count} times")
    return drawn


def drawn_files(root: Path) -> dict[str, tuple[str, str]]:
    """Return file → (its text, its text with redrawn diagrams). MarkError for a missing mark."""
    page = wanted = (root / PAGE).read_text()
    files: dict[str, tuple[str, str]] = {}
    for machine in MACHINES:
        source = (root / machine.file).read_text()
        files[machine.file] = source, with_docstring(machine, source)
        wanted = with_diagram(machine, wanted)
    return files | {PAGE: (page, wanted)}


def main(arguments: Sequence[str], root: Path = ROOT) -> int:
    """Draw the diagrams, or only compare them; return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="print what differs, change nothing")
    is_check = parser.parse_args(arguments).check
    try:
        files = drawn_files(root)
    except MarkError as error:
        print(error, file=sys.stderr)
        return 1
    different = {name: texts for name, texts in files.items() if texts[0] != texts[1]}
    for name, (text, wanted) in different.items():
        if is_check:
            lines = text.splitlines(), wanted.splitlines()
            print("\n".join(difflib.unified_diff(*lines, name, f"{name} (drawn)", lineterm="")))
        else:
            (root / name).write_text(wanted)
            print(f"drawn: {name}")
    return int(is_check and bool(different))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
