"""Explanations as one HTML page: the headline, plugins × nodes, and nodes by reason."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from roadstead.cycle.explain import Explanation, PluginScores
from roadstead.framework.post_filter_answers import PostFilterResult
from roadstead.report.explain_sections import PendingReport, Section
from roadstead.report.explain_view import (
    HeadlineLine,
    RejectedNodes,
    headline,
    preemption_candidates,
    ranked,
    refusals,
    score_columns,
    weighted_scores,
)
from roadstead.report.html_page import html_page, text

NODES_MAX: Final = 2000
"""Maximum number of nodes with scores, and of names per reason, unless `--top` is given."""

SKIPPED: Final = "–"
"""Shown for a plugin that was skipped, and so has no scores."""

_STYLE: Final = """
.scores { overflow: auto; max-height: 80vh; border: 1px solid var(--line) }
.scores th, .scores td { white-space: nowrap; background: var(--page) }
.scores thead th { position: sticky; top: 0; text-align: right; z-index: 1 }
.scores tr > :first-child { position: sticky; left: 0; text-align: left }
.scores thead tr > :first-child { z-index: 2 }
.scores small { display: block }
td, th { vertical-align: top } table.reasons td { text-align: left; overflow-wrap: anywhere }
.good { color: var(--good) } .wait { color: var(--wait) } .bad { color: var(--bad) }
"""


@dataclass(frozen=True, slots=True)
class PageOrigin:
    """Origin of the page. command: reproduces it. source: the inputs with the nodes and pods."""

    command: str
    source: str
    versions: str


def explanation_page(explanation: Explanation, origin: PageOrigin, top: int | None = None) -> str:
    """The page of one pod. top: maximum number of nodes, and of names per reason; 0 for all."""
    limit = _limit(top)
    title = f"Explanation of {explanation.pod_key}"
    body = [f"<h1>{text(explanation.pod_key)}</h1>", *_headline(headline(explanation))]
    body += [*_source(origin), *_details(explanation, limit), *_foot(origin)]
    return html_page(title, body, _STYLE)


def pending_page(report: PendingReport, origin: PageOrigin, top: int | None = None) -> str:
    """The page of all pending pods, a section for each workload and reason."""
    limit = _limit(top)
    body = [f"<h1>{text(report.summary)}</h1>"]
    if report.basis:
        body.append(f"<p>{text(report.basis)}</p>")
    body += _source(origin)
    for section in report.sections:
        body += _section(section, limit)
    return html_page("Pending pods", [*body, *_foot(origin)], _STYLE)


def _limit(top: int | None) -> int | None:
    return NODES_MAX if top is None else top or None


def _section(section: Section, limit: int | None) -> Iterator[str]:
    explanation = section.explanation
    yield f"<h2>{text(section.title)}</h2>"
    yield from _headline(
        [HeadlineLine(section.reason, "bad")] if not explanation else headline(explanation)
    )
    yield _names(f"{len(section.pods):,} pods", section.pods, limit)
    if explanation is not None:
        yield from _details(explanation, limit, "h3")


def _headline(lines: Sequence[HeadlineLine]) -> Iterator[str]:
    for line in lines:
        style = f' class="{line.mark}"' if line.mark else ""
        yield f"<p{style}>{text(line.text)}</p>"


def _source(origin: PageOrigin) -> list[str]:
    return [f"<p>{text(origin.source)}<br><code>{text(origin.command)}</code></p>"]


def _foot(origin: PageOrigin) -> list[str]:
    return [f"<p><small>{text(origin.versions)}</small></p>"]


def _details(explanation: Explanation, limit: int | None, level: str = "h2") -> Iterator[str]:
    if order := ranked(explanation):
        yield f"<{level}>Scores, best node first</{level}>"
        yield from _scores(explanation, order[:limit])
        yield from _left_out(len(order) - len(order[:limit]))
    if found := refusals(explanation):
        nodes = f"{sum(len(each.nodes) for each in found):,} of {len(explanation.names):,}"
        yield f"<{level}>Filtered out: {nodes} nodes</{level}>"
        yield from _refusals(found, limit)
    if explanation.post_filter is not None and explanation.post_filter.candidates:
        yield f"<{level}>Preemption: nodes where the pod would fit, and the pods to evict</{level}>"
        yield from _candidates(explanation.post_filter, limit)


def _scores(explanation: Explanation, shown: Sequence[int]) -> Iterator[str]:
    """A table of plugins × nodes: weighted scores, and below them the raw and normalized ones."""
    by_plugin = {line.plugin: line for line in explanation.scores}
    scored = [by_plugin[column.plugin] for column in score_columns(explanation)]
    skipped = [line for line in explanation.scores if line.normalized is None]
    columns = [*scored, *skipped]
    yield "<p><small>Weighted scores; below each: raw → normalized.</small></p>"
    yield '<div class="scores"><table><thead><tr><th>node</th><th>total</th>'
    yield "".join(_heading(line) for line in columns) + "</tr></thead><tbody>"
    weighted = [weighted_scores(line) for line in columns]
    best = set(explanation.best)
    for index in shown:
        name = explanation.names[explanation.feasible[index]]
        node = f"<b>{text(name)}</b>" if name in best else text(name)
        cells = (_cell(line, scores, index) for line, scores in zip(columns, weighted, strict=True))
        total = f"<td><b>{int(explanation.total[index]):,}</b></td>"
        yield f"<tr><th>{node}</th>{total}{''.join(cells)}</tr>"
    yield "</tbody></table></div>"


def _heading(line: PluginScores) -> str:
    return f"<th>{text(line.plugin)}<small>weight {line.weight:,}</small></th>"


def _cell(line: PluginScores, weighted: tuple[int, ...] | None, index: int) -> str:
    if weighted is None or line.raw is None or line.normalized is None:
        return f"<td>{SKIPPED}</td>"
    raw, normalized = int(line.raw[index]), int(line.normalized[index])
    return f"<td>{weighted[index]:,}<small>{raw:,} → {normalized:,}</small></td>"


def _refusals(found: Sequence[RejectedNodes], limit: int | None) -> Iterator[str]:
    yield '<table class="reasons"><tr><th>plugin</th><th>reason</th><th>nodes</th></tr>'
    for each in found:
        helps = "<br><small>preemption may help</small>" if each.may_preempt else ""
        names = _names(f"{len(each.nodes):,}", each.nodes, limit)
        yield f"<tr><td>{text(each.plugin or '–')}</td><td>{text(each.reason)}{helps}</td>"
        yield f"<td>{names}</td></tr>"
    yield "</table>"


def _candidates(result: PostFilterResult, limit: int | None) -> Iterator[str]:
    # The acceptable candidates are equally good; preemption chooses one of them.
    found, good = preemption_candidates(result), set(result.acceptable)
    if not result.exhaustive:
        yield "<p>Only some of the nodes were tried.</p>"
    yield '<table class="reasons"><tr><th>node</th><th>budgets violated</th><th>victims</th></tr>'
    for each in found[:limit]:
        name = text(each.node_name)
        node = f"<b>{name}</b>" if each.node_name in good else name
        victims = ", ".join(f"{victim.key} ({victim.priority:,})" for victim in each.victims)
        yield f"<tr><td>{node}</td><td>{each.violations:,}</td><td>{text(victims)}</td></tr>"
    yield "</table>"
    yield from _left_out(len(found) - len(found[:limit]))


def _names(summary: str, names: Sequence[str], limit: int | None) -> str:
    """A collapsed list of names."""
    shown = ", ".join(names[:limit])
    more = len(names) - len(names[:limit])
    more_text = f" and {more:,} more" if more else ""
    return f"<details><summary>{text(summary)}</summary>{text(shown)}{more_text}</details>"


def _left_out(count: int) -> Iterator[str]:
    if count > 0:
        yield f"<p>… and {count:,} more nodes; --top 0 shows all</p>"
