"""The pages of the documentation as text, and what may be named on them."""

import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("actors", "config", "protocol", "roadstead", "scripts", "tests", "docs/examples", ".ci")
SUFFIXES = (".py", ".yaml", ".json", ".toml", ".sh")

_FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
_DOCSTRING = re.compile(r'""".*?"""', re.DOTALL)
_COMMENT = re.compile(r"#.*$", re.MULTILINE)
_WORD = re.compile(r"[A-Za-z_]\w*")
_HEADING = re.compile(r"^#+ +(.*)$", re.MULTILINE)


def pages() -> list[str]:
    """Return the pages that describe the present: decisions and changes are historical."""
    docs = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("*.md"))
    return ["README.md", "CONTRIBUTING.md", *docs]


def prose_of(text: str) -> str:
    """Return a page without its blocks of code and output; the number of lines stays."""
    return _FENCE.sub(lambda found: "\n" * found[0].count("\n"), text)


@cache
def anchors_of(text: str) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    titles = _HEADING.findall(prose_of(text))
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@cache
def words_of_sources() -> frozenset[str]:
    """Return every word of the sources outside of comments and docstrings, and names of files."""
    words: set[str] = set()
    for folder in SOURCES:
        for path in (ROOT / folder).rglob("*"):
            words.update(path.name.split("."))
            if path.suffix in SUFFIXES and path.name not in {"test_names.py", "test_tables.py"}:
                text = _DOCSTRING.sub("", path.read_text())
                words.update(
                    _WORD.findall(_COMMENT.sub("", text) if path.suffix == ".py" else text)
                )
    return frozenset(words)


def camel_case(word: str) -> str:
    """Return a name with underscores as manifests and configurations spell it."""
    first, *rest = word.split("_")
    return first + "".join(each.capitalize() for each in rest)
