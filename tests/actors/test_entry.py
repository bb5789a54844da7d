import subprocess
import sys

import pytest

from roadstead.actors import entry
from roadstead.actors.runs.launch import ActorLauncher, in_thread
from roadstead.config.settings import Settings


def test_the_console_script_opens_the_launcher_of_actors():
    assert isinstance(entry.open_launcher(), ActorLauncher)


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


def test_nothing_is_started_ahead_of_a_run_without_ray():
    launcher = ActorLauncher()

    launcher.prepare(Settings(runtime="inline"), "")

    assert launcher._warming is None


def test_what_a_thread_does_arrives_with_its_result_or_its_failure():
    assert in_thread(lambda: 7).result() == 7
    with pytest.raises(ZeroDivisionError):
        in_thread(lambda: 1 // 0).result()
