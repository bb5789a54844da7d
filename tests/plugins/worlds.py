"""Random clusters in two forms: as a table, and as upstream's list of nodes."""

import numpy as np

from tests.builders import filter_with, put, score_with, table_of
from tests.plugins.upstream import NodeInfo


def both(cluster):
    """Return (table, [NodeInfo]) of the same nodes and pods, rows in the order of the list."""
    table = table_of(*(facts for facts, _ in cluster))
    for facts, pods in cluster:
        put(table, facts.name, *pods)
    return table, [NodeInfo(facts, list(pods)) for facts, pods in cluster]


def assert_filters_alike_through_views(plugin, facts, table):
    """Assert that a view of some rows gives the same Filter answers as the whole table."""
    rows = np.arange(len(table))[::-2]
    whole = filter_with(plugin, facts, table)
    assert filter_with(plugin, facts, table.view(rows)) == [whole[row] for row in rows]


def assert_scores_alike_through_views(plugin, facts, table):
    """Assert equal raw scores through a view of some rows; for plugins that read rows alone."""
    rows = np.arange(len(table))[::-2]
    whole = score_with(plugin, facts, table)
    part = score_with(plugin, facts, table.view(rows))
    assert part == (None if whole is None else [whole[row] for row in rows])
