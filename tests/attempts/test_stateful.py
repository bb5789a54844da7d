"""A core with a model of queue, cache and binder, whose messages arrive late and twice.

Checks conservation at every step, determinism, and the same final state in core and model.
"""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from roadstead.attempts.commands import (
    Assume,
    Bind,
    Confirm,
    Done,
    FinishBinding,
    Forget,
    RequeuePods,
    RetryBind,
    SendReports,
)
from roadstead.attempts.pods import RESERVED, AttemptState, BindOutcome, BindResult
from roadstead.protocol.errors import IllegalTransitionError
from roadstead.protocol.status import SKIP, error, unschedulable
from tests.attempts.core_world import WAIT, World
from tests.inside import next_deadline_s, store_of

UIDS = [f"u{number}" for number in range(5)]
NODES = ("n1", "n2")
ANSWERS = (
    {},
    {"reserve": unschedulable("full")},
    {"reserve": error("broken")},
    {"permit": (WAIT, 5.0)},
    {"permit": (WAIT, 5.0), "pre_bind": error("broken")},
    {"permit": (unschedulable("no gang"), 0.0)},
    {"bind": SKIP},
    {"bind": unschedulable("elsewhere")},
    {"pre_bind": RuntimeError("broken"), "unreserve": RuntimeError("broken too")},
    {"post_bind": RuntimeError("broken")},
)

some_uids = st.lists(st.sampled_from(UIDS), min_size=1, max_size=3, unique=True)


class Cluster:
    """The model that exchanges messages with the core. `queue`: uid → "waiting", its lease id,
    "done" or "deleted".
    """

    def __init__(self):
        self.queue = dict.fromkeys(UIDS, "waiting")
        self.counted = {}
        self.answers = {}
        self.bound = {}
        self.to_cache = []
        self.to_binder = []
        self.to_core = []

    def perform(self, effects):
        for effect in effects:
            if isinstance(effect, Forget):
                for one in effect.attempts:
                    if self.counted.get(one.uid) == one.token and one.uid not in self.bound:
                        del self.counted[one.uid]
            elif isinstance(effect, Assume):
                self.to_cache += effect.attempts
            elif isinstance(effect, Bind | RetryBind):
                self.to_binder += effect.attempts
            elif isinstance(effect, Confirm):
                assert all(self.bound[one.uid] == one.token for one in effect.attempts)
            elif isinstance(effect, Done):
                for uid in effect.uids:
                    self._leave_lease(effect.lease_id, uid, "done")
            elif isinstance(effect, RequeuePods):
                for item in effect.items:
                    self._leave_lease(effect.lease_id, item.uid, "waiting")
            else:
                assert isinstance(effect, FinishBinding | SendReports)

    def _leave_lease(self, lease_id, uid, place):
        assert self.queue[uid] == lease_id, (
            f"the report on {uid} names lease {lease_id}, expected {self.queue[uid]}"
        )
        self.queue[uid] = place

    def assume(self, one):
        holder = self.counted.get(one.uid)
        if one.uid in self.bound or holder not in (None, one.token):
            return "refused", one.token
        self.counted[one.uid] = one.token
        return "accepted", one.token

    def bind(self, one, outcome):
        """Same token, same answer; a pod is bound once, and never after it was deleted."""
        if one.token not in self.answers:
            if self.queue[one.uid] == "deleted":
                outcome = BindOutcome.GONE
            elif one.uid in self.bound:
                outcome = BindOutcome.BOUND_ELSEWHERE
            if outcome is BindOutcome.BOUND:
                assert self.counted[one.uid] == one.token, "a bound pod is counted"
                self.bound[one.uid] = one.token
            node_name = one.node_name if outcome is BindOutcome.BOUND else ""
            self.answers[one.token] = BindResult(one.token, outcome, node_name)
        return "answer", self.answers[one.token]


class CoreMachine(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.world = World(max_remembered=10_000)
        self.cluster = Cluster()
        self.log = []
        self.now_s = 0.0
        self.last_lease = 0
        self.tries = dict.fromkeys(UIDS, 0)

    def do(self, command):
        before = self.world.picture()
        result = outcome_of(command, self.world)
        self.log.append((command, result))
        if isinstance(result, str):
            assert self.world.picture() == before, "an illegal event changes nothing"
            return
        self.cluster.perform(result)

    def draw(self, data, items, label):
        """Return one of the messages in transit; it may stay in transit and arrive again."""
        index = data.draw(st.integers(0, len(items) - 1), label)
        return items[index] if data.draw(st.booleans(), "comes again") else items.pop(index)

    def lease_out(self, uids):
        self.last_lease += 1
        lease_id = self.last_lease
        chosen = []
        for uid in uids:
            if self.cluster.queue[uid] not in ("done", "deleted"):
                self.tries[uid] += 1
                self.cluster.queue[uid] = lease_id
                chosen.append((uid, self.tries[uid]))
        self.do(lambda w: w.core.lease(lease_id, [w.pod(uid, n) for uid, n in chosen]))

    def decide(self, uid, attempt, kind, node_name="n1"):
        def command(world):
            decision = {
                "node": world.to_node(uid, node_name, attempt),
                "none": world.to_none(uid, attempt=attempt),
            }[kind]
            return world.core.decided([decision, decision])

        self.do(command)

    def hand_over(self, message):
        kind, what = message
        now_s = self.now_s
        refusal = unschedulable("held by another")
        commands = {
            "accepted": lambda w: w.core.assumed([what], [], now_s),
            "refused": lambda w: w.core.assumed([], [(what, refusal)], now_s),
            "answer": lambda w: w.core.bind_answered([what]),
        }
        self.do(commands[kind])

    @rule(uids=some_uids)
    def lease(self, uids):
        self.lease_out(uids)

    @rule(uids=some_uids)
    def copy_of_the_last_lease(self, uids):
        lease_id, tries = self.last_lease, dict(self.tries)
        same = [uid for uid in uids if self.cluster.queue[uid] == lease_id]
        self.do(lambda w: w.core.lease(lease_id, [w.pod(uid, tries[uid]) for uid in same]))

    @rule(uid=st.sampled_from(UIDS), answers=st.sampled_from(ANSWERS), plugin=st.sampled_from("AB"))
    def plugins_change_their_mind(self, uid, answers, plugin):
        def command(world):
            mine = world.answers[plugin]
            for point in [point for point in mine if point[1] == uid]:
                del mine[point]
            mine.update({(point, uid): found for point, found in answers.items()})
            return []

        self.do(command)

    @rule(data=st.data(), kind=st.sampled_from(["node", "node", "none"]))
    def decide_a_leased_pod(self, data, kind):
        pods = self.world.core.undecided(9)
        if pods:
            pod = data.draw(st.sampled_from(pods), "pod")
            self.decide(pod.uid, pod.attempt, kind, data.draw(st.sampled_from(NODES), "node"))

    @rule(
        uid=st.sampled_from(UIDS),
        attempt=st.integers(0, 4),
        kind=st.sampled_from(["node", "none"]),
        node_name=st.sampled_from(NODES),
    )
    def decide_any_pod(self, uid, attempt, kind, node_name):
        self.decide(uid, attempt, kind, node_name)

    @precondition(lambda self: self.cluster.to_cache)
    @rule(data=st.data())
    def cache_gets_an_assumption(self, data):
        one = self.draw(data, self.cluster.to_cache, "attempt")
        self.cluster.to_core.append(self.cluster.assume(one))

    @precondition(lambda self: self.cluster.to_binder)
    @rule(data=st.data(), outcome=st.sampled_from([BindOutcome.BOUND, *BindOutcome]))
    def binder_gets_a_request(self, data, outcome):
        one = self.draw(data, self.cluster.to_binder, "attempt")
        if outcome in (BindOutcome.GONE, BindOutcome.BOUND_ELSEWHERE):
            outcome = BindOutcome.FAILED
        self.cluster.to_core.append(self.cluster.bind(one, outcome))

    @precondition(lambda self: self.cluster.to_core)
    @rule(data=st.data())
    def core_gets_an_answer(self, data):
        self.hand_over(self.draw(data, self.cluster.to_core, "answer"))

    @rule(number=st.integers(1, 12), outcome=st.sampled_from(BindOutcome))
    def core_gets_an_answer_that_nobody_gave(self, number, outcome):
        token = f"s/1/{number}"
        record = store_of(self.world.core).attempts.get(token)
        # An answer that was never sent raises in these states; in others the core would accept it.
        if record is None or record.state not in (AttemptState.BINDING, AttemptState.ASKED):
            answer = BindResult(token, outcome, "n9")
            self.do(lambda w: w.core.bind_answered([answer]))

    @rule(numbers=st.lists(st.integers(1, 12), max_size=3))
    def answers_are_missed(self, numbers):
        self.do(lambda w: w.core.timed_out([f"s/1/{number}" for number in numbers]))

    @rule(uid=st.sampled_from(UIDS), plugin=st.sampled_from("AB"))
    def permit_allows(self, uid, plugin):
        self.do(lambda w: w.core.allow(uid, plugin))

    @rule(uid=st.sampled_from(UIDS), plugin=st.sampled_from("AB"))
    def permit_rejects(self, uid, plugin):
        self.do(lambda w: w.core.reject(uid, plugin, "the gang is gone"))

    @rule(step_s=st.sampled_from((0.0, 2.0, 5.0)))
    def time_passes(self, step_s):
        self.now_s += step_s
        now_s = self.now_s
        self.do(lambda w: w.core.tick(now_s))
        deadline_s = next_deadline_s(self.world.core)
        assert deadline_s is None or deadline_s > now_s

    @rule(uid=st.sampled_from(UIDS), coin=st.integers(0, 3))
    def pod_is_deleted(self, uid, coin):
        if coin == 0:
            self.cluster.queue[uid] = "deleted"
            self.cluster.bound.pop(uid, None)
            # The cache gets the deletion from the cluster, unless only this scheduler counts the
            # pod.
            self.cluster.counted.pop(uid, None)
            self.do(lambda w: w.core.deleted([uid]))

    @invariant()
    def every_pod_is_in_exactly_one_state(self):
        self.world.core.validate()

    @invariant()
    def lent_pods_are_live_and_live_pods_are_lent(self):
        leased = {uid for uid, place in self.cluster.queue.items() if isinstance(place, int)}
        assert leased == set(store_of(self.world.core).pods.present)

    @invariant()
    def what_is_reserved_is_counted_and_only_attempts_can_be_counted(self):
        live = store_of(self.world.core).pods.present
        for uid, record in live.items():
            if record.state in RESERVED:
                assert self.cluster.counted.get(uid) == record.placed_attempt.token

    @invariant()
    def reserve_and_unreserve_are_called_in_turns(self):
        for uid, record in store_of(self.world.core).pods.present.items():
            calls = [
                line.split()[0]
                for line in self.world.log
                if line in (f"reserve A {uid}", f"unreserve A {uid}")
            ]
            holds = bool(calls) and calls[-1] == "reserve"
            assert calls == ["reserve", "unreserve"] * (len(calls) // 2) + ["reserve"] * holds
            assert holds == (record.state in RESERVED)

    def teardown(self):
        self._deliver_all()
        assert self.world.core.idle
        assert {u for u, place in self.cluster.queue.items() if place == "done"} == set(
            self.cluster.bound
        )
        assert self.cluster.counted == self.cluster.bound, "only bound pods are counted"
        again = World(max_remembered=10_000, classes=self.world.classes)
        for command, result in self.log:
            assert outcome_of(command, again) == result
        assert again.picture() == self.world.picture()
        assert again.log == self.world.log

    def _deliver_all(self):
        """Deliver everything that is in transit, until no pod waits any more."""
        for pod in self.world.core.undecided(99):
            self.decide(pod.uid, pod.attempt, "node")
        self.now_s += 1000.0
        while self.cluster.to_cache or self.cluster.to_binder or self.cluster.to_core:
            self.cluster.to_core += [self.cluster.assume(one) for one in self.cluster.to_cache]
            self.cluster.to_cache = []
            self.cluster.to_core += [
                self.cluster.bind(one, BindOutcome.BOUND) for one in self.cluster.to_binder
            ]
            self.cluster.to_binder = []
            messages, self.cluster.to_core = self.cluster.to_core, []
            for message in messages:
                self.hand_over(message)
            now_s = self.now_s + 1000.0
            self.do(lambda w, now_s=now_s: w.core.tick(now_s))
        now_s = self.now_s + 2000.0
        self.do(lambda w: w.core.tick(now_s))
        self.world.core.validate()


def outcome_of(command, world):
    try:
        return command(world)
    except IllegalTransitionError as failure:
        return str(failure)


CoreMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=50, deadline=None)
TestCoreMachine = CoreMachine.TestCase
