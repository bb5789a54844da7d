import subprocess
import sys
from concurrent.futures import Future

import pytest

from roadstead.actors import entry
from roadstead.actors.runs import launch
from roadstead.actors.runs.event_loops import in_thread
from roadstead.actors.runs.launch import ActorLauncher
from roadstead.config.settings import Settings
from tests import builders
from tests.actors.world import inputs_of, plan_of, pods_of
from tests.cli.manifests import node, pod, write


def test_the_console_script_opens_the_launcher_of_actors():
    assert isinstance(entry.open_launcher().actors(), ActorLauncher)


def test_the_console_script_is_the_command_line(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["roadstead", "--help"])

    with pytest.raises(SystemExit) as end:
        entry.main()

    assert end.value.code == 0
    assert capsys.readouterr().out.startswith("Usage: roadstead ")


def test_help_waits_neither_for_ray_nor_for_the_actors():
    code = (
        "import sys, roadstead.actors.entry; "
        "print([m for m in ('ray', 'uvloop', 'roadstead.actors.runs.launch') if m in sys.modules])"
    )

    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert shown.stdout.strip() == "[]"


def test_an_explanation_without_a_run_loads_no_actors(tmp_path):
    cluster = write(tmp_path / "cluster.json", node("n-1"), pod("web-0"))
    code = (
        "import atexit, sys, roadstead.actors.entry as entry\n"
        "heavy = 'uvloop', 'roadstead.actors.supervisor', 'roadstead.actors.runs.launch'\n"
        "atexit.register(lambda: print([m for m in heavy if m in sys.modules]))\n"
        f"sys.argv[1:] = ['explain', 'web-0', '--cluster', {cluster!r}]\n"
        "entry.main()"
    )

    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert shown.stdout.startswith("default/web-0: 1 of 1 nodes are feasible")
    assert shown.stdout.splitlines()[-1] == "[]"


def test_the_status_is_kept_if_standard_output_is_closed():
    code = (
        "import sys, roadstead.actors.entry as entry\n"
        "sys.argv[1:] = ['unknown']\n"
        "sys.stdout.close()\n"
        "entry.main()"
    )

    ended = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True
    )

    assert ended.returncode == 2
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("waiting", [(), ("a", "b")], ids=["as given", "after a run"])
def test_explanations_are_those_of_the_launcher_of_actors(waiting):
    inputs, asked = inputs_of([builders.node("n1")], pods_of(*waiting)), pods_of("asked")[0]
    launchers = entry.open_launcher(), ActorLauncher()

    one = [each.explain(inputs, plan_of(), asked, lambda progress: None) for each in launchers]
    pods = [asked, *inputs.pending]
    all_of = [
        each.explain_pending(inputs, plan_of(), pods, lambda progress: None) for each in launchers
    ]

    assert one[0].as_recorded() == one[1].as_recorded()
    assert [len(each.pods) for each in all_of[0]] == [len(each.pods) for each in all_of[1]]
    assert all_of[0][0].explanation.as_recorded() == all_of[1][0].explanation.as_recorded()


@pytest.mark.parametrize(("runtime", "starts"), [("inline", 0), ("ray", 1)])
def test_only_ray_is_started_in_advance(monkeypatch, runtime, starts):
    threads = []
    monkeypatch.setattr(launch, "in_thread", lambda work, _: threads.append(work) or Future())
    launcher = ActorLauncher()

    for _ in range(2):
        launcher.prepare(Settings(runtime=runtime), "")

    assert len(threads) == starts


def test_the_result_or_failure_of_a_thread_is_returned():
    assert in_thread(lambda: 7, "work").result() == 7
    with pytest.raises(ZeroDivisionError):
        in_thread(lambda: 1 // 0, "work").result()
