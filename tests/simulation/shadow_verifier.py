"""A shadow of the binder's verifier: every answer is computed again, without cached state.

For each pod and node PreFilter is run, and every filter is called for the one row. Where pods are
accepted as a group, each is checked on a copy of the table that contains those before it.
"""

import numpy as np

from roadstead.framework.diagnosis import excluded_status
from roadstead.framework.guarded import PluginFailure
from roadstead.framework.pre_filtering import run_pre_filter
from roadstead.protocol.status import SUCCESS, Code, Status

SHOWN = 3


def status_on(profile, pod_class, table, node_name):
    """The filters' result for one node: Success or the first refusal."""
    outcome = run_pre_filter(profile, pod_class, table)
    state = outcome.state
    if not outcome.status.is_success:
        return outcome.status
    if outcome.node_names is not None and node_name not in outcome.node_names:
        return excluded_status(outcome.restricted_by)
    row = table.view(np.array([table.row_of(node_name)]))
    for plugin in profile.filter:
        if plugin.name not in state.skipped:
            result = plugin.filter(state, pod_class, row)
            if result.codes is not None and result.codes[0]:
                status = result.statuses[int(result.codes[0]) - 1]
                if status.code is Code.ERROR:
                    text = f'running "{plugin.name}" filter plugin: {status.message}'
                    return Status(Code.ERROR, (text,), plugin.name)
                return Status(status.code, status.reasons, plugin.name)
    return SUCCESS


class ShadowCommits:
    """Follows the verifier's answers that one life of a binder uses, and its claims.

    A commit is refused where the verifier refuses it, and then assumes no claims; else the claims
    of its pod decide. wrong: called with each difference.
    """

    def __init__(self, binder, wrong):
        self._wrong, self._answers = wrong, []
        self._verifier, self._volumes = binder.verifier, binder.volumes
        for owner, names in (
            (self._verifier, ("verify", "verify_prefix")),
            (self._volumes, ("commit", "try_out")),
        ):
            for name in names:
                setattr(owner, name, self._noted(name, getattr(owner, name)))
        core = binder.core
        core._verify = self._one("commit", core._verify)
        core._dry_run = self._one("try_out", core._dry_run)
        core._verify_prefix = self._first(core._verify_prefix)

    def _noted(self, name, original):
        def noted(*what):
            self._answers.append((name, answer := original(*what)))
            return answer

        return noted

    def _one(self, take, original):
        def checked(request):
            self._answers.clear()
            actual = original(request)
            asked = ["verify"]
            if self._answers and self._answers[0][1].is_success and request.facts.may_bind_claims:
                asked.append(take)
            # A commit tries its claims first.
            if [
                n for n, _ in self._answers if n in ("verify", take)
            ] != asked or actual is not self._answers[-1][1]:
                self._wrong(
                    f"{request.key} has the answer {actual}, of {self._answers}, not {asked}"
                )
            return actual

        return checked

    def _first(self, original):
        def checked(requests):
            self._answers.clear()
            actual = original(requests)
            if actual and self._answers[-1:] != [("verify_prefix", actual)]:
                self._wrong(f"{actual} of {len(requests)} go together, of {self._answers[-1:]}")
            committed = [status.is_success for name, status in self._answers if name == "commit"]
            wanted = sum(1 for each in requests[:actual] if each.facts.device_claims)
            # At most the claims of the pod after these are refused.
            if (
                sum(committed) != wanted
                or not all(committed[:wanted])
                or len(committed) > actual + 1
            ):
                self._wrong(f"claims of {committed} are bound, of {wanted} pods are wanted")
            if any(each.facts.volumes for each in requests[:actual]):
                self._wrong("pods with volumes go together")
            return actual

        return checked


class ShadowVerifier:
    """Follows one life of a verifier. problems: the first few differences."""

    def __init__(self, verifier):
        self._table, self._profiles = verifier._table, verifier._profiles
        self.problems = []
        self._verify_again, self._first_again = verifier.verify, verifier.verify_prefix
        verifier.verify, verifier.verify_prefix = self.verify, self.verify_prefix

    def verify(self, facts, node_name):
        actual = self._verify_again(facts, node_name)
        try:
            wanted = self._status(self._table, facts, node_name)
        except PluginFailure:
            return actual
        is_same = (actual.code, actual.plugin) == (wanted.code, wanted.plugin)
        is_same &= sorted(actual.reasons) == sorted(wanted.reasons)
        if not is_same:
            self._differs(f"{facts} on {node_name}: {actual}, not {wanted}")
        return actual

    def verify_prefix(self, pods, node_names, bind_claims=None):
        copy, checked = self._table.copy_rows(np.arange(len(self._table))), 0

        def check(until):
            """Filter pods, each on those before it, and before the claims of those behind it."""
            nonlocal checked
            for facts, name in zip(pods[checked:until], node_names[checked:until], strict=True):
                wanted = self._status(copy, facts, name)
                if not wanted.is_success:
                    self._differs(f"{facts} on {name} with others: let through, not {wanted}")
                copy.add_pod(name, copy.classes.pod_class(facts))
            checked = until

        def bind(index):
            check(index + 1)
            return bind_claims(index)

        binds = () if bind_claims is None else (bind,)
        actual = self._first_again(pods, node_names, *binds)
        if actual > checked:
            check(actual)
        return actual

    def look(self):
        """Every answer was compared when it was given."""

    def _status(self, table, facts, node_name):
        profile = self._profiles[facts.scheduler_name]
        return status_on(profile, table.classes.pod_class(facts), table, node_name)

    def _differs(self, text):
        if len(self.problems) < SHOWN:
            self.problems.append(f"shadow of the verifier: {text}")
