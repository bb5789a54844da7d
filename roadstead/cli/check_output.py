"""Comparison of the placements in an output folder with the journal."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from roadstead.invariants.checker import Violation
from roadstead.protocol.errors import cut_short
from roadstead.report.paths import JOURNAL_FOLDER

DURABLE = "I9"
"""The invariant that every acknowledged bind, and so every one in an output, is in the journal."""

RUN_FILE = "run.json"
"""Name of the description of a run in its output folder."""

PLACEMENT_FILES = ("placements.json", "placements.parquet")

Bound = Mapping[str, tuple[str, str]]
"""UID of a pod → (its key, the name of its node)."""


def journal_and_output(folder: Path) -> tuple[Path, Path | None]:
    """Return the journal that a folder is, contains or names, and the run's output folder, if any.

    If a run kept its journal elsewhere (`--journal`), its `run.json` names that folder.
    """
    if (folder / JOURNAL_FOLDER).is_dir():
        return folder / JOURNAL_FOLDER, folder if (folder / RUN_FILE).is_file() else None
    if (named := _named_journal(folder / RUN_FILE)) is not None:
        return named, folder
    parent = folder.parent
    is_output = folder.name == JOURNAL_FOLDER and (parent / RUN_FILE).is_file()
    return folder, parent if is_output else None


def _named_journal(path: Path) -> Path | None:
    """Return the journal that a run's `run.json` names, or None."""
    try:
        journal = json.loads(path.read_bytes())["settings"]["journal"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return Path(journal) if isinstance(journal, str) else None


def differences_of_output(folder: Path, bound: Bound) -> list[Violation]:
    """Return the differences between an output's placements and the pods bound in its journal."""
    return [each for name in PLACEMENT_FILES for each in _differences(folder / name, bound)]


def _differences(path: Path, bound: Bound) -> Iterator[Violation]:
    try:
        rows = _parquet(path) if path.suffix == ".parquet" else _json(path)
        # By UID, as in `Bound`.
        written = {uid: (pod, node) for pod, uid, node in rows}
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as failure:
        text = cut_short(str(failure) or type(failure).__name__)
        yield Violation(0, DURABLE, pod=path.name, node="", text=f"cannot be read: {text}")
        return
    for uid in sorted(written.keys() | bound.keys()):
        pod, node = written.get(uid, bound.get(uid, ("", "")))
        if uid not in bound:
            text = f"in {path.name}, but not in the journal"
        elif uid not in written:
            text = f"in the journal, but not in {path.name}"
        elif node != bound[uid][1]:
            text = f"on this node in {path.name}, on {bound[uid][1]} in the journal"
        else:
            continue
        yield Violation(0, DURABLE, pod, node, text)


def _json(path: Path) -> Sequence[tuple[str, str, str]]:
    rows = json.loads(path.read_bytes())
    return [(str(row["pod"]), str(row["uid"]), str(row["node"])) for row in rows]


def _parquet(path: Path) -> Sequence[tuple[str, str, str]]:
    from roadstead.report.parquet import Decoder

    with Decoder() as decoder:
        columns = decoder.read(path, ("pod", "uid", "node"))
    return [(str(pod), str(uid), str(node)) for pod, uid, node in zip(*columns, strict=True)]
