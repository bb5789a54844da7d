"""Random calls of a scheduler's core, for situations that runs seldom reach: a new core, with a
run's plan and pods, is called at random and followed by its shadow.

Decisions, answers and ends of overlapping leases arrive late, twice or with contradictions; each
answer of a plugin is drawn, and plugins decide on waiting pods between any two calls.
"""

import random
from collections import Counter
from dataclasses import replace

from roadstead.attempts.commands import Assume, Bind, RetryBind
from roadstead.attempts.core import AttemptsCore
from roadstead.attempts.pods import BindOutcome, BindResult
from roadstead.cycle.batch import Decision, PodInCycle
from roadstead.framework.diagnosis import Diagnosis
from roadstead.framework.guarded import PluginFailure
from roadstead.framework.members import GroupMembers
from roadstead.framework.post_filter_answers import PostFilterResult
from roadstead.framework.victims import Candidate, Victim
from roadstead.nodes.pod_class import PodClasses
from roadstead.protocol.errors import IllegalTransitionError
from roadstead.protocol.status import SKIP, SUCCESS, Code, Status, error, unschedulable
from roadstead.run import build_profiles
from tests.inside import next_deadline_s
from tests.peculiar_plugins import BINDING, config_with, peculiar
from tests.simulation.shadow_cycle import LOGGED, ShadowCycle

CALLS = 150
PODS = 8
NODES = ("n0", "n1", "n2")
KINDS = (
    "lease",
    "decide",
    "assumed",
    "answered",
    "timed_out",
    "deleted",
    "say",
    "time",
    "contradict",
)
WEIGHTS = (4, 6, 6, 6, 2, 1, 3, 3, 4)


def problems_of(plan, scenario, drawn):
    """Return the first few differences between a core that is called at random and its shadow."""
    draw = random.Random(f"ramble attempts {drawn}")
    ramble = _Ramble(plan, scenario, draw)
    for number in range(CALLS):
        ramble.step()
        if ramble.problems:
            return [f"call {number} at random: {each}" for each in ramble.problems]
    ramble.core.validate()
    return []


class _Ramble:
    """One core. sent: (effect's kind, attempts) without an answer, and some that were answered."""

    def __init__(self, plan, scenario, draw):
        self._draw, self._now_s, self._lease_id = draw, 0.0, 0
        names = [each.name for each in draw.sample(BINDING, draw.randint(0, len(BINDING)))]
        names = [name for name in names if name not in plan.config_text]
        plan = replace(
            plan,
            config_text=config_with(*names, config=plan.config_text),
            plugins=(*plan.plugins, *peculiar(*names)),
        )
        self._classes = PodClasses()
        profiles = build_profiles(plan, self._classes, members=GroupMembers())
        self._plugins = {
            plugin.name: plugin
            for profile in profiles.values()
            for kind, _ in LOGGED
            for plugin in getattr(profile, kind)
            if plugin.name in names
        }
        for plugin in self._plugins.values():
            self._draw_answers(plugin)
        self.core = AttemptsCore("ramble", 1, profiles, draw.choice((2, 5, 1000)))
        self._waiting = next(iter(profiles.values())).waiting
        self._shadow = ShadowCycle(self.core)
        self.problems = self._shadow.problems
        pods = draw.sample(scenario.pods, min(len(scenario.pods), self._some(PODS)))
        self._facts = {
            who: replace(facts, nominated_node_name=draw.choice(("", "", "n1")))
            for who, facts in pods
        }
        self._attempts = dict.fromkeys(self._facts, 1)
        self._decisions, self._sent, self._answers = [], [], []

    def _some(self, most):
        return self._draw.randint(1, most)

    def _draw_answers(self, plugin):
        draw = self._draw

        def status(*_):
            refusals = unschedulable("not now"), Status(Code.PENDING, ("soon",)), error("broken")
            return draw.choice(refusals) if draw.random() < 0.2 else SUCCESS

        def permit(*_):
            waits = draw.random() < 0.6
            wait_s = draw.choice((0.0, 0.5, 3.0, 5000.0))
            return (Status(Code.WAIT), wait_s) if waits else (status(), 0.0)

        def failing(*_):
            if draw.random() < 0.1:
                raise PluginFailure(plugin.name, error("the oracle is silent"))

        def taken(*_):
            return draw.choice((SKIP, SKIP, SUCCESS, error("no")))

        drawn = {"reserve": status, "permit": permit, "pre_bind": status, "bind": taken}
        drawn |= {"unreserve": failing, "post_bind": failing}
        for method, answer in drawn.items():
            if hasattr(plugin, method):
                setattr(plugin, method, answer)

    def step(self):
        (kind,) = self._draw.choices(KINDS, WEIGHTS)
        getattr(self, f"_{kind}")()
        self._look()

    def _look(self):
        """Plugins see the state that the shadow has."""
        self.core.waiting_gangs()
        self.core.waiting_leases()
        live = self._shadow._live
        waits = [
            (uid, each.attempt.node_name, tuple(sorted(each.waits)))
            for uid, each in live.items()
            if each.state == "waiting"
        ]
        shown = [(each.pod.uid, each.node_name, each.plugins) for each in self._waiting]
        found = [who.uid for who in self._facts if self._waiting.get(who.uid) is not None]
        if sorted(shown) != sorted(waits) or sorted(found) != sorted(uid for uid, _, _ in waits):
            self.problems.append(f"{shown} and {found} are shown to wait, not {waits}")
        due = (each.deadline_s for each in live.values() if each.state == "waiting")
        if (shown := next_deadline_s(self.core)) != (wanted := min(due, default=None)):
            self.problems.append(f"the next pod waits until {shown}, not {wanted}")
        coming = [e.facts for e in live.values() if e.state == "assuming" and e.refusal is None]
        if Counter(self._waiting.before_permit()) != Counter(coming):
            self.problems.append(
                f"{[*self._waiting.before_permit()]} are shown to come, not {coming}"
            )

    def _do(self, name, *what):
        try:
            effects = getattr(self.core, name)(*what)
        except (IllegalTransitionError, KeyError):
            # The shadow checks whether it should.
            return
        for effect in effects:
            if isinstance(effect, Assume | Bind | RetryBind):
                self._sent.append((type(effect), effect.attempts))

    def _pod(self, who):
        pod_class = self._classes.pod_class(self._facts[who])
        key = f"{who.namespace}/{who.name}"
        return PodInCycle(who.uid, key, pod_class, pod_class, self._attempts[who])

    def _chosen(self, most=3):
        return self._draw.sample(list(self._facts), min(self._some(most), len(self._facts)))

    def _lease(self):
        self._lease_id += self._draw.random() < 0.8
        lease_id = max(1, self._lease_id - (self._draw.random() < 0.15))
        pods = []
        for who in self._chosen(5):
            is_over = self.core.state_of(who.uid) in ("unschedulable", "failed", "conflict", "gone")
            self._attempts[who] += is_over
            pods.append(self._pod(who))
        self._do("lease", lease_id, pods)

    def _decided(self, pod):
        draw = self._draw
        chance = draw.random()
        if chance < 0.6:
            return Decision(pod, draw.choice(NODES), 2, 10, 1)
        if chance < 0.75:
            return Decision(pod, None, error=draw.choice(("broken", "out of order")))
        found = Diagnosis(3)
        code = draw.choice((Code.UNSCHEDULABLE, Code.PENDING, Code.UNSCHEDULABLE_AND_UNRESOLVABLE))
        found.add(Status(code, ("no room",), draw.choice(("NodeResourcesFit", "NodePorts"))), 3)
        return Decision(pod, None, diagnosis=found, post_filter=self._post_filter())

    def _post_filter(self):
        draw = self._draw
        victim = Victim("uid-victim", "default/victim", 0)
        candidate = Candidate("n1", (victim,) * draw.randint(1, 2))
        status = draw.choice((SUCCESS, unschedulable("nobody has to go")))
        nominated = draw.choice((None, "", "n0", "n1"))
        return draw.choice((None, PostFilterResult(status, nominated, (candidate,))))

    def _decide(self):
        decisions = [self._decided(pod) for pod in self.core.undecided(self._some(5))]
        self._decisions = self._decisions[-8:] + decisions
        versions = {name: self._some(9) for name in NODES[:2]}
        self._do("decided", decisions, versions)

    def _answered_of(self, *kinds):
        """Return attempts of one effect that is answered now, in most cases once."""
        places = [place for place, (kind, _) in enumerate(self._sent) if kind in kinds]
        if not places:
            return ()
        place = self._draw.choice(places)
        is_kept = self._draw.random() < 0.2
        attempts = self._sent[place][1] if is_kept else self._sent.pop(place)[1]
        self._sent = self._sent[-20:]
        return attempts

    def _assumed(self):
        accepted, refused = [], []
        for each in self._answered_of(Assume):
            if self._draw.random() < 0.85:
                accepted.append(each.token)
            else:
                refused.append((each.token, unschedulable("no such node")))
        self._do("assumed", accepted, refused, self._now_s)

    def _answer(self, attempt):
        outcome = self._draw.choice((*[BindOutcome.BOUND] * 4, *BindOutcome))
        node_name = attempt.node_name if outcome is BindOutcome.BOUND else ""
        return BindResult(attempt.token, outcome, node_name, "" if node_name else "no room")

    def _answered(self):
        answers = [self._answer(each) for each in self._answered_of(Bind, RetryBind)]
        self._answers = self._answers[-8:] + answers
        self._do("bind_answered", answers)

    def _timed_out(self):
        attempts = self._answered_of(Assume, Bind, RetryBind)
        self._do("timed_out", [each.token for each in (*attempts, *attempts[:1])])

    def _deleted(self):
        self._do("deleted", [who.uid for who in self._chosen(2)])

    def _time(self):
        self._now_s += self._draw.choice((0.1, 0.5, 2.0, 1000.0))
        self._do("tick", self._now_s)

    def _say(self):
        """Plugins decide on waiting pods; the next call of the core applies that."""
        draw = self._draw
        plugin = draw.choice((*self._plugins, "nobody"))
        for who in self._chosen():
            if draw.random() < 0.6:
                self._waiting.allow(who.uid, plugin)
            elif draw.random() < 0.7:
                self._waiting.reject(who.uid, plugin, "go away")
            else:
                priority = self._facts[who].priority
                self._waiting.reject_where(
                    lambda facts, than=priority: facts.priority >= than, plugin, "all of you"
                )
        if draw.random() < 0.5:
            self._do("tick", self._now_s)
        if draw.random() < 0.3:
            uid = draw.choice(list(self._facts)).uid
            self._do("reject", uid, plugin, "go away")

    def _contradict(self):
        """Make a contradictory call: the shadow predicts whether it is ignored or raises."""
        draw, pods = self._draw, [self._pod(who) for who in self._chosen()]
        kind = draw.choice(("copies", "attempts", "both", "tokens", "answers", "elsewhere"))
        if kind == "copies":
            self._do("decided", draw.sample(self._decisions, min(2, len(self._decisions))))
        elif kind == "attempts":
            other = draw.choice((-1, 0, 1))
            pods = [pod._replace(attempt=pod.attempt + other) for pod in pods]
            self._do("decided", [self._decided(pod) for pod in pods])
        elif kind == "both":
            pods = [*self.core.undecided(1), *pods[:1]]
            self._do("decided", [self._decided(pod) for pod in pods for _ in range(2)])
        elif kind == "tokens":
            token = draw.choice(("ramble/1/0", "ramble/1/99999", "ramble/1/007", "other/1/1"))
            answer = BindResult(token, BindOutcome.GONE)
            refused = [(token, unschedulable("no such node"))]
            calls = ("assumed", [token], [], 0.0), ("assumed", [], refused, 0.0)
            self._do(*draw.choice((*calls, ("bind_answered", [answer]), ("timed_out", [token]))))
        elif kind == "answers":
            attempts = self.core.attempts()
            asked = draw.sample(attempts, min(2, len(attempts)))
            answers = [self._answer(each) for each in asked for _ in range(self._some(2))]
            self._do("bind_answered", answers + draw.sample(self._answers, self._answers != []))
        else:
            attempts = self.core.attempts()[:1]
            answers = [BindResult(each.token, BindOutcome.BOUND, "away") for each in attempts]
            self._do("bind_answered", answers)
