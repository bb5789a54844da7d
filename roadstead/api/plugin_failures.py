"""Notes on failures of the user's plugins in a run, each with a pod that the failure concerned."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from roadstead.report.result import PendingPod


def failure_notes(pending: Iterable[PendingPod], plugins: Sequence[str]) -> Iterator[str]:
    """One line per failure message: the first pod that has it, and the number of other pods.

    plugins: names of the user's plugins.
    """
    pods: dict[tuple[str, str], list[str]] = {}
    for each in pending:
        # A pod that plugins reject has reasons; a failed attempt has only a message.
        failed = [] if each.reasons else [name for name in plugins if f'"{name}"' in each.message]
        for name in failed[:1]:
            pods.setdefault((name, each.message), []).append(each.pod)
    for (name, message), of in pods.items():
        more = f" and {len(of) - 1:,} more" if len(of) > 1 else ""
        yield f"Plugin {name} failed for pod {of[0]}{more}: {message}"
