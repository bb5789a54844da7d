"""`roadstead demo --live`: a day is played, shown while it is played, and can be asked about."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console
from rich.live import Live

from roadstead.cli import live_demo
from roadstead.cli.live_view import (
    LineView,
    LiveFrame,
    TerminalView,
    ZoneFrame,
    clock,
    event_text,
    frame_of,
    picture,
    shown_fleet,
)
from roadstead.facts.node import ZONE_LABEL, NodeFacts
from roadstead.facts.taints import Taint
from roadstead.simulator.component import Note
from tests.builders import pod
from tests.cli.conftest import Run
from tests.simulator.plays import plan_of, played

HOUR_US = 3_600_000_000
FRAME = LiveFrame(
    14 * HOUR_US, 20, 3, 1_000, (ZoneFrame("a", 4, 4, 15, 0.5), ZoneFrame("b", 4, 1, 5, 0.25))
)
SHORT = """
apiVersion: roadstead.dev/v1
kind: Scenario
metadata: {name: short}
fleet: [{generate: {nodes: 4, shape: cpu-8, zones: 2}}]
workload:
- arrivals: {every: 1m}
  duration: 5m
  pods:
  - template:
      metadata: {name: task}
      spec: {containers: [{name: main, image: i, resources: {requests: {cpu: 1}}}]}
horizon: 4h
"""


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_demo, "example_text", lambda name: SHORT)


def zoned(name: str, zone: str, **more: object) -> NodeFacts:
    room = (("cpu", 1_000),)
    return NodeFacts(
        name, labels=((ZONE_LABEL, zone),), allocatable=room, allocatable_pods=10, **more
    )


def test_a_day_is_played_and_ends_with_figures_and_two_commands(
    run: Run, short: None, tmp_path: Path
) -> None:
    folder = tmp_path / "day.run"

    result = run("demo", "--live", "--output", folder)

    assert result.exit_code == 0
    assert "default-0" in result.stdout
    assert f"roadstead why {folder} default/task-0-" in result.stdout
    assert f'roadstead query {folder} "SELECT owner' in result.stdout
    assert f"Plots over time: {folder / 'report.html'}" in result.stdout
    assert "nodes zone-0 2/2, zone-1 2/2" in result.stderr
    assert (folder / "scenario.yaml").read_text() == SHORT
    summary = json.loads((folder / "default-0" / "summary.json").read_text())
    assert summary["created"] == 240
    assert any((folder / "default-0" / "pods").iterdir())


def test_the_demo_replaces_its_own_run_and_no_other(run: Run, short: None, tmp_path: Path) -> None:
    folder = tmp_path / "day.run"
    assert run("demo", "--live", "--output", folder).exit_code == 0
    assert run("demo", "--live", "--output", folder).exit_code == 0

    (folder / "scenario.yaml").write_text("another: scenario")
    refused = run("demo", "--live", "--output", folder)
    assert refused.exit_code == 2
    assert "--force replaces them" in refused.stderr
    assert run("demo", "--live", "--output", folder, "--force").exit_code == 0

    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("")
    assert "holds other files" in run("demo", "--live", "--output", tmp_path / "mine").stderr


@pytest.mark.parametrize(
    "option", [("--small",), ("--pods", 3), ("--runtime", "inline"), ("-o", "json")]
)
def test_options_of_the_other_demo_are_refused(run: Run, option: tuple[object, ...]) -> None:
    result = run("demo", "--live", *option)

    assert result.exit_code == 2
    assert "apply to --live" in result.stderr


def test_a_frame_counts_pods_and_available_nodes_by_zone() -> None:
    lost = Taint("node.kubernetes.io/unreachable", "", "NoExecute")
    nodes = [
        zoned("n1", "a"),
        zoned("n2", "b", taints=(lost,)),
        zoned("n3", "b", unschedulable=True),
    ]

    _, engine = played(plan_of(nodes, [(1, "p", pod(cpu=250), None)]))
    frame = frame_of(engine)

    assert (frame.running, frame.pending, frame.ended) == (1, 0, 0)
    assert frame.zones == (ZoneFrame("a", 1, 1, 1, 0.25), ZoneFrame("b", 2, 0, 0, 0.0))


def test_lines_show_every_event_and_the_fleet_now_and_then(
    capsys: pytest.CaptureFixture[str],
) -> None:
    view = LineView()
    for hour in range(5):
        view.frame(LiveFrame(hour * HOUR_US, hour, 0, 0, ()))
    for name in ("n1", "n2", "n3"):
        view.event(9 * HOUR_US // 2, Note("lost", name, "zone b"))
    view.event(9 * HOUR_US // 2, Note("drained", "n4"))
    view.frame(LiveFrame(5 * HOUR_US, 0, 0, 0, ()))
    view.frame(LiveFrame(6 * HOUR_US, 0, 0, 0, ()))

    lines = capsys.readouterr().err.splitlines()
    assert [line[:5] for line in lines] == ["00:00", "02:00", "04:00", "04:30", "04:30", "06:00"]
    assert lines[3:5] == ["04:30  lost  n1  zone b, and 2 more", "04:30  drained  n4"]


def test_a_terminal_shows_zones_and_the_latest_events_at_a_pace() -> None:
    now_s, slept = [0.0], list[float]()
    screen = Console(file=io.StringIO(), force_terminal=True, width=80)
    with Live(console=screen, auto_refresh=False) as live:
        view = TerminalView(live, 24 * HOUR_US, lambda: now_s[0], slept.append)
        view.event(FRAME.now_us, Note("lose", "zone b"))
        view.frame(FRAME)
        now_s[0] = 100.0
        view.frame(FRAME)

    assert slept == [pytest.approx(8.0 * 14 / 24), 0.0]
    shown = screen.file.getvalue()  # type: ignore[attr-defined]
    for part in ("14:00 of 1d", "running 20", "lose  zone b", "1/4"):
        assert part in shown


def test_a_picture_fits_a_narrow_terminal() -> None:
    screen = Console(file=io.StringIO(), width=60)

    screen.print(picture(FRAME, 24 * HOUR_US, [event_text(0, Note("w" * 100, "s"))]))

    assert max(map(len, screen.file.getvalue().splitlines())) <= 60  # type: ignore[attr-defined]


def test_a_file_gets_lines_and_times_are_hours_and_minutes() -> None:
    with shown_fleet(Console(file=io.StringIO()), HOUR_US) as view:
        assert isinstance(view, LineView)
    assert clock(25 * HOUR_US + 59_999_999) == "25:00"
