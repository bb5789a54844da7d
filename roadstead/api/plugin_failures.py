"""Notes on failures of the user's plugins in a run, each with a pod that the failure concerned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import cast

from roadstead.api.run_query import FAILED_ATTEMPTS, RunQuery
from roadstead.framework.failures import is_plugin_error
from roadstead.report.result import PendingPod
from roadstead.report.units import counted


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
    for (name, message), failed_pods in pods.items():
        more = f" and {len(failed_pods) - 1:,} more" if len(failed_pods) > 1 else ""
        yield f"Plugin {name} failed for pod {failed_pods[0]}{more}: {message}"


def simulated_failure_notes(folders: Iterable[Path]) -> Iterator[str]:
    """One line per message of failed plugins in simulated runs, with the number of attempts.

    Raises InputError for tables that cannot be read.
    """
    counts = Counter[str]()
    for folder in folders:
        for message, attempts in RunQuery(folder).execute(FAILED_ATTEMPTS).rows:
            counts[str(message or "")] += cast("int", attempts)
    for message, attempts in counts.most_common():
        if is_plugin_error(message):
            yield f"A plugin failed in {counted(attempts, 'attempt')}: {message}"
