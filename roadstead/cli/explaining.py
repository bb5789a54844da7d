"""Explaining one pod of the inputs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from difflib import get_close_matches

from roadstead.cli.inputs import Loaded
from roadstead.cli.options import Form
from roadstead.cli.progress import shown_progress
from roadstead.cli.scheduling import print_json, tell_notes
from roadstead.cli.session import Session
from roadstead.facts.pod import Pod
from roadstead.protocol.errors import InputError, cut_short
from roadstead.run import RunInputs, RunPlan

NAMES_MAX = 5
HINT_MAX_PODS = 20_000


@dataclass(frozen=True, slots=True)
class Question:
    """pod: name or namespace/name. after_run: explained once all other pods are scheduled."""

    pod: str
    after_run: bool = False


def explain(
    session: Session, loaded: Loaded, plan: RunPlan, question: Question, form: Form, top: int
) -> None:
    """Print why the pod goes where it goes. InputError if there is no such pod, or several."""
    tell_notes(loaded)
    pod = find_pod(loaded.inputs, question.pod)
    inputs = without(loaded.inputs, pod, keep_pending=question.after_run)
    with shown_progress() as tell:
        explanation = session.launcher().explain(inputs, plan, pod, tell)
    if form == "json":
        print_json(explanation.as_expected())
        return
    from rich.console import Console

    from roadstead.report.explain_table import print_explanation

    print_explanation(Console(), explanation, top)


def find_pod(inputs: RunInputs, name: str) -> Pod:
    """The pod of this name or namespace/name, as one that has no node yet.

    Raises:
        InputError: there is none, or there are several of this name.
    """
    found = [pod for pod in _pods(inputs) if name in (pod[0].key, pod[0].name)]
    if len(found) == 1:
        return found[0]
    if found:
        keys = ", ".join(sorted(identity.key for identity, _ in found)[:NAMES_MAX])
        raise InputError(
            f"is the name of {len(found)} pods; say which: {keys}", field="POD", value=f'"{name}"'
        )
    raise InputError(
        f"is no pod of the inputs{_hint(inputs, name)}", field="POD", value=cut_short(name)
    )


def without(inputs: RunInputs, pod: Pod, *, keep_pending: bool) -> RunInputs:
    """The inputs without the pod; other pending pods only if they are to be scheduled first."""
    uid = pod[0].uid
    others = (each for each in inputs.pending if each[0].uid != uid)
    return replace(
        inputs,
        running=tuple(each for each in inputs.running if each[0].uid != uid),
        pending=tuple(others) if keep_pending else (),
    )


def _pods(inputs: RunInputs) -> Iterator[Pod]:
    yield from inputs.pending
    for identity, facts, _ in inputs.running:
        yield identity, facts


def _hint(inputs: RunInputs, name: str) -> str:
    known = dict.fromkeys(
        identity.key if "/" in name else identity.name for identity, _ in _pods(inputs)
    )
    few_enough = list(known) if len(known) <= HINT_MAX_PODS else []
    close = get_close_matches(name, few_enough, n=NAMES_MAX, cutoff=0.8)
    if close:
        return f" (did you mean {', '.join(close)}?)"
    return f" (they have {len(inputs.pending) + len(inputs.running):,})"
