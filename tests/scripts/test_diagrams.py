"""The script that draws the state machines from their tables."""

import re
import shutil
from enum import StrEnum
from pathlib import Path

import pytest

from roadstead.transitions import TransitionTable

ROOT = Path(__file__).resolve().parents[2]
NAMES = (
    *("queue", "attempts", "cache", "binder", "sweep"),
    *("sender of a journal copy", "receiver of a journal copy", "pod life", "node health"),
)


class Light(StrEnum):
    RED = "red"
    GREEN = "green"
    OFF = "off"


class Event(StrEnum):
    GO = "go"
    STOP = "stop"
    LOOK = "look"
    BREAK = "break"


LIGHT = TransitionTable(
    "light",
    {
        (Light.GREEN, Event.LOOK): Light.GREEN,
        (Light.GREEN, Event.BREAK): Light.OFF,
        (Light.GREEN, Event.STOP): Light.OFF,
        (Light.RED, Event.GO): Light.GREEN,
    },
)


@pytest.fixture
def diagrams(scripts):
    return scripts("diagrams")


@pytest.fixture
def checkout(diagrams, tmp_path):
    """Return a folder with the files that contain diagrams."""
    for name in [machine.file for machine in diagrams.MACHINES] + [diagrams.PAGE]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def table_of(diagrams, name):
    (table,) = [machine.table for machine in diagrams.MACHINES if machine.name == name]
    return table


def arrows_in(table):
    return {(state.name, event.value, target.name) for state, event, target in table}


def read_text(text):
    """Return the arrows of a docstring's diagram."""
    arrows, state = set(), ""
    for line in text.splitlines():
        state = line[4:].split(" ", 1)[0] or state
        for events, target in re.findall(r"── ([\w, ]+) ──► (\w+)", line):
            arrows |= {(state, event, target) for event in events.split(", ")}
        for events in re.findall(r"↺ ([\w, ]+)", line):
            arrows |= {(state, event, state) for event in events.split(", ")}
    return arrows


def read_mermaid(text):
    """Return the arrows of a diagram on the page."""
    found = re.findall(r"^    (\w+) --> (\w+): (.+)$", text, re.MULTILINE)
    return {
        (state, event, target) for state, target, events in found for event in events.split(", ")
    }


def test_every_transition_table_of_the_product_is_drawn(diagrams):
    files = [path.relative_to(ROOT / "roadstead") for path in ROOT.glob("roadstead/**/*.py")]
    tables = {
        ".".join(file.with_suffix("").parts) + ".TABLE"
        for file in files
        if "\nTABLE: " in (ROOT / "roadstead" / file).read_text()
    }

    assert {machine.table_name for machine in diagrams.MACHINES} == tables
    assert {machine.name for machine in diagrams.MACHINES} == set(NAMES)


def test_docstrings_and_page_show_the_machines_of_the_tables(diagrams, capsys):
    assert diagrams.main(["--check"]) == 0, capsys.readouterr().out


@pytest.mark.parametrize("name", NAMES)
def test_a_diagram_shows_every_arrow_of_its_table_and_no_other(diagrams, name):
    table = table_of(diagrams, name)

    assert read_text(diagrams.text_of(table)) == arrows_in(table)
    assert read_mermaid(diagrams.mermaid_of(table)) == arrows_in(table)


@pytest.mark.parametrize("name", NAMES)
def test_a_docstrings_diagram_fits_its_lines_and_has_the_states_in_order(diagrams, name):
    table = table_of(diagrams, name)
    states = [state.name for state in diagrams.states_of(table)]

    lines = diagrams.text_of(table).splitlines()

    assert max(map(len, lines)) <= 100
    assert [line.split()[0] for line in lines if line[4] != " "] == states


def test_events_to_one_state_are_joined_and_those_that_lead_back_are_last(diagrams):
    assert diagrams.text_of(LIGHT).splitlines() == [
        "    RED   ── go ──► GREEN",
        "    GREEN ── stop, break ──► OFF   ↺ look",
        "    OFF   (no event is allowed)",
    ]


def test_the_pages_diagram_begins_in_the_first_state_and_ends_in_final_states(diagrams):
    assert diagrams.mermaid_of(LIGHT).splitlines() == [
        "```mermaid",
        "stateDiagram-v2",
        "    [*] --> RED",
        "    RED --> GREEN: go",
        "    GREEN --> OFF: stop, break",
        "    GREEN --> GREEN: look",
        "    OFF --> [*]",
        "```",
    ]


def test_a_different_diagram_is_reported_with_its_lines_and_unchanged(diagrams, checkout, capsys):
    source = checkout / "roadstead/binder/__init__.py"
    source.write_text(source.read_text().replace("── flush ──► BOUND", "── flush ──► DELETED"))
    wrong = source.read_text()

    assert diagrams.main(["--check"], checkout) == 1

    assert "+    TENTATIVE ── flush ──► BOUND" in capsys.readouterr().out
    assert source.read_text() == wrong


def test_different_diagrams_are_redrawn_and_nothing_else_is_changed(diagrams, checkout):
    paths = [checkout / "roadstead/queue/__init__.py", checkout / diagrams.PAGE]
    right = [path.read_text() for path in paths]
    for path in paths:
        path.write_text(path.read_text().replace("── lease ──► IN_FLIGHT", "").replace("[*]", ""))

    assert diagrams.main([], checkout) == 0

    assert [path.read_text() for path in paths] == right


def test_a_diagram_without_its_marks_is_an_error_that_names_file_and_machine(
    diagrams, checkout, capsys
):
    page = checkout / diagrams.PAGE
    page.write_text(page.read_text().replace("<!-- end of cache -->", ""))

    assert diagrams.main([], checkout) == 1

    printed = capsys.readouterr().err
    assert printed == f"{diagrams.PAGE}: the marks for the diagram of cache stand 0 times\n"
