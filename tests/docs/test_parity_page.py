"""The table of plugins in `docs/parity.md` has a row for each in-tree plugin, and no others."""

import re

from roadstead.plugins.in_tree import in_tree_classes
from tests.docs.modules import ROOT

PAGE = (ROOT / "docs" / "parity.md").read_text()


def test_each_in_tree_plugin_has_its_row():
    table = PAGE.partition("\n## Plugins\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| ([A-Z][\w, ]+) \|", table, re.MULTILINE)

    differing = {name for row in rows for name in row.split(", ")} ^ in_tree_classes().keys()
    assert not differing, "in the table of docs/parity.md or in the registry, not in both"
