"""The modules of the project as syntax trees, parsed once for all tests of a process."""

import ast
import gc
import io
import tokenize
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = ("actors", "config", "protocol", "roadstead")


class Module(NamedTuple):
    text: str
    tree: ast.Module


@cache
def modules_in(*folders: str) -> dict[Path, Module]:
    """Return path → module of these folders and those below; links are not followed."""
    paths = (path for each in folders for path in sorted((ROOT / each).rglob("*.py")))
    texts = {path: path.read_text() for path in paths}
    # While the trees are built, the garbage collector searches them again and again: of 9.2 s for
    # product and tests it took 6.3 s. They stay until the end, so later collections leave them out.
    gc.disable()
    try:
        return {path: Module(text, ast.parse(text)) for path, text in texts.items()}
    finally:
        gc.enable()
        gc.freeze()


@cache
def comments_in(*folders: str) -> dict[Path, list[tuple[int, str]]]:
    """Return path → (line, text) of each comment of these modules."""
    return {
        path: [
            (token.start[0], token.string)
            for token in tokenize.generate_tokens(io.StringIO(module.text).readline)
            if token.type == tokenize.COMMENT
        ]
        for path, module in modules_in(*folders).items()
    }
