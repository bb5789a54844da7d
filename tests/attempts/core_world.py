"""A scheduler's core with scripted plugins that record their calls."""

from typing import ClassVar

from roadstead.attempts.commands import Assume, Bind
from roadstead.attempts.core import AttemptsCore
from roadstead.attempts.pods import AttemptState, BindOutcome, BindResult
from roadstead.cycle.batch import Decision, PodInCycle
from roadstead.framework.diagnosis import Diagnosis
from roadstead.framework.plugin import (
    BindPlugin,
    PermitPlugin,
    PostBindPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    ReservePlugin,
)
from roadstead.framework.post_filter_answers import PostFilterResult
from roadstead.nodes.pod_class import PodClasses
from roadstead.protocol.status import SUCCESS, Code, Status, unschedulable
from tests.builders import pod, profile_of
from tests.inside import next_deadline_s, store_of

WAIT = Status(Code.WAIT)
TOO_SMALL = Status(Code.UNSCHEDULABLE, ("Insufficient cpu",), "NodeResourcesFit")


class Scripted(
    ReservePlugin, PermitPlugin, PreBindPlugin, BindPlugin, PostBindPlugin, PostFilterPlugin
):
    """Return Success, or the entry of `answers` under (point) or (point, uid); raise exceptions."""

    name = ""
    answers: ClassVar = {}
    log: ClassVar = []

    def answer(self, point, uid, otherwise):
        self.log.append(f"{point} {self.name} {uid}")
        found = self.answers.get((point, uid), self.answers.get(point, otherwise))
        if isinstance(found, Exception):
            raise found
        return found

    def reserve(self, pod, facts, node_name):
        return self.answer("reserve", pod.uid, SUCCESS)

    def unreserve(self, pod, facts, node_name):
        self.answer("unreserve", pod.uid, None)

    def permit(self, pod, facts, node_name):
        return self.answer("permit", pod.uid, (SUCCESS, 0.0))

    def pre_bind(self, pod, facts, node_name):
        return self.answer("pre_bind", pod.uid, SUCCESS)

    def bind(self, pod, facts, node_name):
        return self.answer("bind", pod.uid, SUCCESS)

    def post_bind(self, pod, facts, node_name):
        self.answer("post_bind", pod.uid, None)

    def post_filter(self, pod, failed):
        return self.answer("post_filter", "", PostFilterResult(unschedulable("nobody to evict")))


POINTS = ("reserve", "permit", "preBind", "bind", "postBind", "postFilter")


class World:
    """One core; `answers` by plugin name; `log` of all plugin calls in order."""

    def __init__(
        self, *, answers=None, plugins=("A", "B"), points=POINTS, max_remembered=100, classes=None
    ):
        self.answers = {name: dict((answers or {}).get(name, {})) for name in plugins}
        self.log = []
        kinds = [
            type(name, (Scripted,), {"name": name, "answers": self.answers[name], "log": self.log})
            for name in plugins
        ]
        self.classes = classes or PodClasses()
        points = dict.fromkeys(points, tuple(plugins))
        self.profile = profile_of(points, plugins=kinds, classes=self.classes)
        self.core = AttemptsCore("s", 1, {"default-scheduler": self.profile}, max_remembered)
        self.pod_class = self.classes.pod_class(pod(cpu=100))

    def pod(self, uid="u1", attempt=1):
        return PodInCycle(uid, f"default/{uid}", self.pod_class, "class", attempt)

    def lease(self, *uids, lease_id=1, attempt=1):
        return self.core.lease(lease_id, [self.pod(uid, attempt) for uid in uids or ("u1",)])

    def to_node(self, uid="u1", node_name="n1", attempt=1):
        return Decision(self.pod(uid, attempt), node_name)

    def to_none(self, uid="u1", diagnosis=None, attempt=1):
        return Decision(self.pod(uid, attempt), None, diagnosis=diagnosis or too_small())

    def to_error(self, uid="u1", text="PreScore broke"):
        return Decision(self.pod(uid), None, error=text)

    def place(self, *uids, attempt=1):
        """Place leased pods on nodes; return their tokens."""
        effects = self.core.decided([self.to_node(uid, attempt=attempt) for uid in uids or ("u1",)])
        return [one.token for one in only(Assume, effects).attempts]

    def accept(self, *tokens, now_s=0.0):
        return self.core.assumed(tokens, [], now_s)

    def refuse(self, token="s/1/1", text="another attempt holds it"):
        return self.core.assumed([], [(token, unschedulable(text))], 0.0)

    def answer(self, outcome, token="s/1/1", node_name="n1", message=""):
        node_name = node_name if outcome is BindOutcome.BOUND else ""
        return self.core.bind_answered([BindResult(token, outcome, node_name, message)])

    def binding(self, *uids):
        """Bring pods to the binder; return the effects of the last step."""
        self.lease(*uids)
        effects = self.accept(*self.place(*uids))
        assert only(Bind, effects)
        return effects

    def bring_to(self, state):
        """Bring the single pod u1 to a state that it can have between two calls."""
        if state is AttemptState.NEW:
            return self
        self.lease()
        if state is AttemptState.UNSCHEDULABLE:
            self.core.decided([self.to_none()])
        elif state is AttemptState.FAILED:
            self.core.decided([self.to_error()])
        elif state is not AttemptState.LEASED:
            self._beyond_decision(state)
        assert self.core.state_of("u1") is state
        return self

    def _beyond_decision(self, state):
        (token,) = self.place()
        if state is AttemptState.CONFLICT:
            self.refuse(token)
        elif state is AttemptState.GONE:
            self.core.deleted(["u1"])
        elif state is AttemptState.WAITING:
            self.answers["A"]["permit"] = WAIT, 10.0
            self.accept(token)
        elif state is not AttemptState.ASSUMING:
            self.accept(token)
            if state is AttemptState.ASKED:
                self.core.timed_out([token])
            elif state is AttemptState.BOUND:
                self.answer(BindOutcome.BOUND, token)

    def picture(self):
        """The whole state of the core, for comparisons."""
        store = store_of(self.core)
        kept = [store.pods.present, store.pods.ended, store.attempts, store.ended_attempts]
        pods = [{name: picture_of(record) for name, record in each.items()} for each in kept]
        return pods, list(store.undecided), self.core.counts(), next_deadline_s(self.core)


def picture_of(record):
    return (
        record.pod,
        record.lease_id,
        record.state,
        record.history,
        record.decided,
        record.attempt,
        record.answer,
        dict(record.waits),
    )


def too_small(nodes=3):
    diagnosis = Diagnosis(nodes)
    diagnosis.add(TOO_SMALL, nodes)
    return diagnosis


def kinds(effects):
    return [type(effect).__name__ for effect in effects]


def only(kind, effects):
    """Return the only effect of this kind."""
    (found,) = [effect for effect in effects if isinstance(effect, kind)]
    return found


def tokens(kind, effects):
    return [attempt.token for attempt in only(kind, effects).attempts]
