"""Files, folders and links that pages name exist. Decision records are historical, and left out."""

import re

import pytest

from tests.docs.pages import ROOT, anchors_of, pages, prose_of

PATH = re.compile(r"`([\w./-]+(?:\.py|\.md|\.toml|/))(?:::(\w+)(?:\.(\w+))?)?`")
OWN_FILE = re.compile(r"^`([\w.-]+)`:$|<!-- figures(?: \(\w+\))?: file ([\w.-]+) -->", re.MULTILINE)
"""The name of a file whose content the page shows."""
MADE = {"FILE.py", "few_pods.py", "test_few_pods.py", "inputs/", "runs/001/"}
"""Names in descriptions of commands, and of files that commands write."""
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")
PACKAGES = ("", "roadstead", "docs")
"""Possible roots of a path: the checkout, or, in most sentences, the package."""


def files_named(path):
    if "/" in path:
        return [ROOT / package / path for package in PACKAGES if (ROOT / package / path).exists()]
    folders = ("roadstead", "actors", "protocol", "config", "scripts", "tests", "docs")
    here = [ROOT / path] if (ROOT / path).exists() else []
    return here + [found for each in folders for found in (ROOT / each).rglob(path)]


def defines(file, name):
    return re.search(
        rf"^\s*(?:async def|def|class) {name}\b|^\s*{name}\b.* =", file.read_text(), re.M
    )


@pytest.mark.parametrize("page", pages())
def test_every_file_and_folder_on_the_page_exists(page):
    text = (ROOT / page).read_text()
    own = {name for names in OWN_FILE.findall(text) for name in names}

    missing = [
        path
        for path, *names in PATH.findall(text)
        if path not in own | MADE
        and not any(
            all(defines(file, name) for name in names if name) for file in files_named(path)
        )
    ]
    assert missing == []


def test_the_pages_name_files():
    text = "\n".join((ROOT / page).read_text() for page in pages())

    assert len(PATH.findall(text)) > 300


@pytest.mark.parametrize("page", pages())
def test_every_link_of_the_page_has_its_target(page):
    text = prose_of((ROOT / page).read_text())
    broken = []
    for path, anchor in LINK.findall(text):
        target = ((ROOT / page).parent / path).resolve() if path else ROOT / page
        is_page = target.suffix == ".md" and target.is_file()
        if not target.exists() or (
            anchor and is_page and anchor not in anchors_of(target.read_text())
        ):
            broken.append(f"{path}#{anchor}")

    assert broken == []


@pytest.mark.parametrize("page", pages())
def test_every_row_of_a_table_belongs_to_one(page):
    """A blank line within a table makes text of the rows after it."""
    blocks = re.findall(r"(?:^\|.*\|$\n?)+", prose_of((ROOT / page).read_text()), re.MULTILINE)

    for block in blocks:
        head, line, *rows = [*block.splitlines(), ""]
        assert re.fullmatch(r"\|(?: *:?-+:? *\|)+", line), head
        columns = {len(re.findall(r"(?<!\\)\|", each)) for each in (head, line, *rows) if each}
        assert len(columns) == 1, head


def test_the_architecture_page_describes_each_package_once():
    links = {"actors", "config", "protocol"}
    packages = {path.parent.name for path in (ROOT / "roadstead").glob("*/__init__.py")}
    rows = re.findall(r"^\| (`.*?) \|", (ROOT / "docs/ARCHITECTURE.md").read_text(), re.MULTILINE)

    named = [path for row in rows for path in re.findall(r"`roadstead/(\w+)/`", row)]
    assert packages - links - set(named) == set()
    assert len(named) == len(set(named))
