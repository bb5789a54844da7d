"""Required pod affinity of pods that come one after another: whether each is let to its row.

    per class and line, pods by domain, counted once  ──►  pod by pod: may it stand there?
                                                           ──►  what it is to the others

What InterPodAffinity would say of each pod after those before it had come. A pod that would be the
first of its kind gets no yes: Filter knows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from roadstead.nodes.columns import I32, I64
from roadstead.nodes.pod_info import PodInfo
from roadstead.nodes.table import Rows, Table
from roadstead.plugins.inter_pod_counts import Counts
from roadstead.plugins.inter_pod_terms import Family, Line

AVOIDED = (Family.EXISTING_ANTI, Family.ANTI_AFFINITY)
_REQUIRED = (*AVOIDED, Family.AFFINITY)

MAX_CLASSES = 16
"""Classes of which each may be something to each other; of more the answer is no."""

Codes = Callable[[str], I32]
"""The label codes of a topology key: int32[row], -1 where a node lacks it."""


class _Sums:
    """For one line of a class, related pods by domain: int64[code]."""

    __slots__ = ("by_code", "codes", "is_avoided")

    def __init__(self, line: Line, vector: I64 | None, codes: I32) -> None:
        self.is_avoided = line[0] in AVOIDED
        self.codes = codes
        size = int(codes.max(initial=-1)) + 1
        self.by_code: I64 = np.zeros(size, dtype=np.int64)
        if vector is not None:
            there = codes >= 0
            found = np.bincount(codes[there], weights=vector[there], minlength=size)
            self.by_code = found.astype(np.int64)

    def admits(self, row: int) -> bool:
        code = self.codes[row]
        beside = code >= 0 and self.by_code[code] > 0
        return bool(not beside if self.is_avoided else beside)

    def come(self, row: int, pods: int) -> None:
        code = self.codes[row]
        if code >= 0:
            self.by_code[code] += pods


def may_stand(
    pods: Sequence[PodInfo],
    rows: Rows,
    table: Table,
    counts_of: Mapping[PodInfo, Counts],
    codes: Codes,
) -> bool:
    """Whether each of the pods, which come to `rows` in this order, may stand there.

    counts_of: by class, of all classes of the pods; none of their terms failed to parse.
    """
    meeting = counts_of if any(any(each.pod.terms.groups) for each in counts_of.values()) else {}
    if len(meeting) > MAX_CLASSES:
        return False
    lines: dict[PodInfo, dict[Line, _Sums]] = {}
    for info, counts in counts_of.items():
        vectors = counts.find(table)
        wanted = {line for line in vectors if line[0] in _REQUIRED}
        for other in meeting:
            wanted |= {line for line, _ in counts.relation_to(other) if line[0] in _REQUIRED}
        wanted |= {(Family.AFFINITY, each.topology_key) for each in counts.pod.terms.affinity}
        lines[info] = {line: _Sums(line, vectors.get(line), codes(line[1])) for line in wanted}
    if not any(lines.values()):
        return True
    means = {info: _means(info, meeting, lines) for info in counts_of}
    for info, row in zip(pods, rows.tolist(), strict=True):
        if not all(sums.admits(row) for sums in lines[info].values()):
            return False
        for sums, number in means[info]:
            sums.come(row, number)
    return True


def _means(
    info: PodInfo,
    counts_of: Mapping[PodInfo, Counts],
    lines: Mapping[PodInfo, Mapping[Line, _Sums]],
) -> list[tuple[_Sums, int]]:
    """What one pod of a class adds to the sums of all."""
    return [
        (lines[other][line], number)
        for other, counts in counts_of.items()
        for line, number in counts.relation_to(info)
        if line in lines[other]
    ]
