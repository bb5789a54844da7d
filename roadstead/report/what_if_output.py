"""The output folder of a what-if question: the answer as JSON, its table as Parquet, and texts.

fit.json, nodes.parquet                    of `fit`
grow.json, shapes.parquet, nodes.yaml      of `grow`; nodes.yaml has the nodes to add
shrink.json, nodes.parquet                 of `grow --shrink`
drain.json, pods.parquet                   of `drain`
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from roadstead.protocol.errors import InputError
from roadstead.report.parquet import write_parquet
from roadstead.report.paths import entries

if TYPE_CHECKING:
    from arro3.core import Table

FILES: Final = frozenset(
    {"fit.json", "grow.json", "shrink.json", "drain.json", "nodes.yaml"}
    | {"nodes.parquet", "shapes.parquet", "pods.parquet"}
)


@dataclass(frozen=True, slots=True)
class AnswerFiles:
    """The files of an answer. name: of the JSON file. tables, texts: by file name."""

    name: str
    document: Mapping[str, object]
    tables: Mapping[str, Table]
    texts: Mapping[str, str] = field(default_factory=dict)


def check_answer_folder(folder: Path, *, may_replace: bool, flag: str) -> None:
    """Raise InputError unless the folder is missing or empty, or has an answer to be replaced.

    flag: the option that replaces an answer, for the error.
    """
    found = entries(folder)
    if not all(each.name in FILES for each in found):
        problem = "holds files that no what-if command wrote; name an empty or new directory"
        raise InputError(problem, source=str(folder))
    if found and not may_replace:
        problem = f"holds another answer; {flag} replaces it"
        raise InputError(problem, source=str(folder))


def write_answer(folder: Path, files: AnswerFiles) -> None:
    """Write an answer, replacing an earlier one. Raises InputError if it cannot be written."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        staged = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
        try:
            text = json.dumps(files.document, indent=2, ensure_ascii=False)
            (staged / f"{files.name}.json").write_text(text + "\n", encoding="utf-8")
            for name, table in files.tables.items():
                write_parquet(staged / name, table)
            for name, content in files.texts.items():
                (staged / name).write_text(content, encoding="utf-8")
            folder.mkdir(exist_ok=True)
            # By name: since the check of the folder, the user may have put other files in it.
            for name in FILES:
                (folder / name).unlink(missing_ok=True)
            for path in sorted(staged.iterdir()):
                os.replace(path, folder / path.name)
        finally:
            shutil.rmtree(staged, ignore_errors=True)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", source=str(folder)) from error
