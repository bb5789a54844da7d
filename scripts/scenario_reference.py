"""The reference of scenarios in docs/scenario.md, made from the schema.

scripts/scenario_reference.py             fail if the page shows something else
scripts/scenario_reference.py --update    write it into the page
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from roadstead.config.scenario.reference import reference_markdown

PAGE = Path(__file__).parents[1] / "docs" / "scenario.md"
MARK = "<!-- made by scripts/scenario_reference.py --update -->\n"


def with_reference(page: str) -> str:
    """Return the page with the reference of this schema behind the mark."""
    head, mark, _ = page.partition(MARK)
    if not mark:
        raise SystemExit(f"{PAGE.name} has no mark {MARK.strip()}")
    return f"{head}{mark}\n{reference_markdown()}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--update", action="store_true", help="write the page")
    options = parser.parse_args()
    page = PAGE.read_text()
    made = with_reference(page)
    if options.update:
        PAGE.write_text(made)
    elif made != page:
        sys.exit(f"{PAGE.name} does not show the schema; run this script with --update")


if __name__ == "__main__":
    main()
