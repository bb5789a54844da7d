"""A shadow of a scheduler's core: each call is followed on a plain model (`cycle_account.py`).

After each call its effects are compared with those of the core, in order and field by field.
Plugins' answers are recorded when the core calls them; the model uses these answers, so that a call
that the core omits, or makes twice, is visible as well.
"""

from collections import Counter

from roadstead.attempts.pods import AttemptState
from roadstead.framework.guarded import PluginFailure
from roadstead.protocol.errors import IllegalTransitionError
from tests.simulation.cycle_account import UNBOUND, CycleAccount

SHOWN = 3
CALLS = ("lease", "decided", "assumed", "reject", "tick", "bind_answered", "timed_out", "deleted")
LOGGED = (
    ("reserve", ("reserve", "unreserve")),
    ("permit", ("permit",)),
    ("pre_bind", ("pre_bind",)),
    ("bind", ("bind",)),
    ("post_bind", ("post_bind",)),
    ("pod_deletion", ("pod_deleted",)),
)
"""Of a profile: its plugins of a kind, and the methods that the core calls."""


class _Room:
    """Replaces the mailbox of plugins' decisions: records each one that the core removes."""

    def __init__(self, room, note):
        self._room, self._note = room, note

    def pop_decisions(self):
        decisions = self._room.pop_decisions()
        self._note(("decisions", decisions))
        return decisions


class ShadowCycle(CycleAccount):
    """Follows one life of a scheduler's core. problems: the first few differences."""

    def __init__(self, core):
        self._core = core
        most = core._store.pods.max_ended
        super().__init__(
            f"{core.owner}/{core.epoch}/", core._profiles, len(core._waiting_registries), most
        )
        self._log, self.problems = [], []
        for profile in dict.fromkeys(core._profiles.values()):
            self._note_calls(profile)
        core._waiting_registries = tuple(
            _Room(room, self._log.append) for room in core._waiting_registries
        )
        for name in CALLS:
            setattr(core, name, self._followed(name, getattr(core, name)))
        for name in ("undecided", "waiting_leases", "waiting_gangs", "state_of"):
            setattr(core, name, self._asked(name, getattr(core, name)))

    def _note_calls(self, profile):
        for kind, methods in LOGGED:
            for plugin in getattr(profile, kind):
                for method in methods:
                    call = getattr(plugin, method)
                    if not hasattr(call, "noted_by"):
                        noted = self._noted(plugin.name, method, call)
                        noted.noted_by = self
                        setattr(plugin, method, noted)

    def _noted(self, name, method, call):
        def noted(identity, facts, node_name):
            where = method, name, identity.uid, node_name
            try:
                answer = call(identity, facts, node_name)
            except PluginFailure as failure:
                self._log.append((*where, failure))
                raise
            self._log.append((*where, answer))
            return answer

        return noted

    def _followed(self, name, original):
        def call(*what, **how):
            self._log.clear()
            forbidden = self._forbids(name, *what)
            try:
                effects = original(*what, **how)
            except (IllegalTransitionError, KeyError) as refused:
                if not forbidden:
                    self._differs(name, f"raises {refused!r}")
                if self._log:
                    self._differs(name, f"asks plugins and raises: {self._log}")
                raise
            if forbidden:
                self._differs(name, f"does not raise, though {forbidden}")
            if len(self.problems) < SHOWN:
                self._begin(self._log, effects)
                try:
                    getattr(self, f"_{name}")(*what, **how)
                    if name != "timed_out":
                        self._apply_decisions()
                except (KeyError, AssertionError) as lost:
                    self._differs(name, f"cannot be followed: {lost!r}")
                self._compare(name, effects)
            return effects

        return call

    def _asked(self, name, original):
        def ask(*what):
            actual, wanted = original(*what), getattr(self, f"_ask_{name}")(*what)
            if actual != wanted:
                self._differs(name, f"{actual}, not {wanted}")
            return actual

        return ask

    def look(self):
        """Every call was compared when it was made."""

    def _differs(self, name, text):
        if len(self.problems) < SHOWN:
            self.problems.append(f"shadow of {self._prefix}: {name}: {text}")

    def _compare(self, name, effects):
        wanted = self._out.listed([*self._attempts])
        if effects != wanted:
            pairs = zip([*effects, None], [*wanted, None], strict=False)
            first = next((pair for pair in pairs if pair[0] != pair[1]), (effects, wanted))
            self._differs(name, f"{first[0]}, not {first[1]}")
        if rest := [each for each in self._calls if each != ("decisions", [])]:
            self._differs(name, f"plugins are called without need: {rest}")
        actual = self._core.counts()
        states = Counter(each.state for each in self._live.values())
        for state in ("leased", "assuming", "waiting", "binding", "asked"):
            if getattr(actual, state) != states[state]:
                self._differs(name, f"{getattr(actual, state)} are {state}, not {states[state]}")
        pods = self._core._store.pods
        ends = {each: pods.ended_as(AttemptState(each)) for each in ("bound", *UNBOUND)}
        for end, count in (*ends.items(), ("begun", pods.begun), ("bound", actual.bound_total)):
            if count != self._counts[end]:
                self._differs(name, f"{end}: {count}, not {self._counts[end]}")
        live = sum(states.values())
        if actual.live != live:
            self._differs(name, f"{actual.live} pods are live, not {live}")
        if self._core.idle is not (not self._live):
            self._differs(name, f"idle is {self._core.idle}, {len(self._live)} pods are live")
        attempts = tuple(each.attempt for each in self._attempts.values())
        if self._core.attempts() != attempts:
            self._differs(name, f"attempts are {self._core.attempts()}, not {attempts}")
