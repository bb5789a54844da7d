"""Damaged sources of traces: every import ends in a trace or in an error about the input."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from click.testing import CliRunner

from roadstead.cli.main import build_cli
from roadstead.cli.trace_import import IMPORT_COMMANDS
from roadstead.fleet.trace_file import read_trace
from tests.cli.plain_launcher import PlainLauncher
from tests.trace_sources import write_sources

WORDS = (
    b"",
    b"-1",
    b"nan",
    b"1e400",
    b"9" * 30,
    b'"',
    b"\xff",
    b"\0",
    b"{",
    b"]",
    b"\n",
    b",,",
    b"[[[[",
)
DAMAGES = 25


def damage(content: bytes, rng: random.Random) -> bytes:
    """Replace, remove or repeat some bytes."""
    start = rng.randrange(len(content) + 1)
    end = min(len(content), start + rng.choice((0, 1, 1, 3, 20)))
    part = rng.choice((*WORDS, content[start:end] * 2, bytes([rng.randrange(256)])))
    return content[:start] + part + content[end:]


@pytest.mark.parametrize("name", [command.name for command in IMPORT_COMMANDS])
@pytest.mark.parametrize("on_error", ["stop", "skip"])
def test_damaged_sources_are_imported_or_refused_and_never_crash(
    tmp_path: Path, name: str, on_error: str
) -> None:
    rng = random.Random(f"{name} {on_error}")
    arguments = write_sources(tmp_path)[name]
    source = Path(str(arguments[0]))
    paths = [source] if source.is_file() else [p for p in source.rglob("*") if p.is_file()]
    sound = {path: path.read_bytes() for path in (*paths, *tmp_path.glob("m.yaml"))}
    for number in range(DAMAGES):
        for path, content in sound.items():
            path.write_bytes(content)
        path = rng.choice(list(sound))
        path.write_bytes(damage(sound[path], rng))
        out = tmp_path / f"{number}.trace"

        result = CliRunner().invoke(
            build_cli(PlainLauncher),
            ["trace", "import", name, *map(str, arguments), "-o", str(out), "--on-error", on_error],
            catch_exceptions=False,
        )

        assert result.exit_code in (0, 2), result.stderr
        assert out.exists() == (result.exit_code == 0)
        if result.exit_code == 0:
            read_trace(out)
        else:
            assert len(result.stderr) < 2000
