"""HTML pages without scripts and network access, in the reader's light or dark colours."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Final

from roadstead.protocol.errors import printable

_STYLE: Final = """
:root { color-scheme: light dark; --text: #1c2126; --page: #fff; --line: #e3e6e9; --dim: #667;
  --code: #f2f3f5; --note: #eef5ee; --good: #1d7044; --wait: #8a5a00; --bad: #b3212d }
@media (prefers-color-scheme: dark) { :root { --text: #dfe3e7; --page: #15181b; --line: #343a40;
  --dim: #99a2ab; --code: #23282d; --note: #1b2a21; --good: #63c28d; --wait: #e0b050;
  --bad: #ff8a8f } }
body { font: 15px/1.45 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem;
  color: var(--text); background: var(--page) }
h1 { font-size: 1.5rem } h2 { font-size: 1.15rem; margin-top: 2rem }
h1, h2, li, p { overflow-wrap: anywhere }
table { border-collapse: collapse; font-size: 13px } .wide { overflow-x: auto }
td, th { padding: .25rem .6rem; border-bottom: 1px solid var(--line); text-align: right }
td.word, th { text-align: left } small { color: var(--dim) }
code { background: var(--code); padding: .1rem .3rem }
"""


def html_page(title: str, body: Iterable[str], style: str = "") -> str:
    """A complete page. body: HTML in which all text is escaped. style: additional CSS."""
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{text(title)}</title><style>{_STYLE}{style}</style></head><body>",
        *body,
        "</body></html>",
    ]
    return "\n".join(parts) + "\n"


def text(value: str) -> str:
    """Convert text from outside to HTML: escaped, and without control characters."""
    return escape(printable(value))
