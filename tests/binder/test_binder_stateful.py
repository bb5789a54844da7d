"""Any sequence of calls keeps one node per pod and one answer per token, durable before
acknowledged.
"""

from collections.abc import Callable

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from roadstead.binder import (
    Acknowledge,
    AppendJournal,
    BindConflictError,
    BinderCore,
    BinderHaltedError,
    BinderSettings,
    BinderState,
    BindRequest,
    Bound,
    Released,
    TableStore,
)
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.journal import RecordKind
from roadstead.protocol.errors import IllegalTransitionError
from roadstead.protocol.status import SUCCESS, Status, unschedulable
from tests.inside import counts_of
from tests.journal.memory_journal import MemoryJournal

PODS_PER_NODE = 2
FACTS = (PodFacts(requests=(("cpu", 100),)), PodFacts(requests=(("cpu", 300),)))
NODES = ("n1", "n2")
SETTINGS = BinderSettings(max_unflushed=6, max_tokens=1000, max_gone_remembered=2)

uids = st.sampled_from([f"u{number}" for number in range(5)])
node_names = st.sampled_from(NODES)
facts = st.sampled_from(FACTS)

Command = Callable[[BinderCore], object]


def new_binder() -> BinderCore:
    store = TableStore()

    def verify(request: BindRequest) -> Status:
        count = store.table.row_facts(request.node_name)["pod_count"]
        return SUCCESS if count < PODS_PER_NODE else unschedulable("Too many pods")

    core = BinderCore(store, verify, SETTINGS)
    for name in NODES:
        core.add_node(NodeFacts(name))
    return core


def outcome(command: Command, core: BinderCore) -> object:
    try:
        return command(core)
    except (IllegalTransitionError, BindConflictError, BinderHaltedError) as error:
        return str(error)


def picture(core: BinderCore) -> object:
    pods = {uid: (one.state, one.history, one.node_name) for uid, one in core.pods.present.items()}
    rows = {name: core.placements.store.table.row_facts(name) for name in core.placements.nodes}
    return pods, rows, core.version, core.last_lsn, core.flushed_lsn, counts_of(core), core.halted


class BinderMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.core = new_binder()
        self.journal = MemoryJournal()
        self.log: list[tuple[Command, object]] = []
        self.answers: dict[str, object] = {}
        self.next_token = 0
        self.sent: list[BindRequest] = []

    def do(self, command: Command) -> object:
        before = picture(self.core)
        result = outcome(command, self.core)
        self.log.append((command, result))
        if isinstance(result, str):
            assert picture(self.core) == before, "an illegal event changes nothing"
        for effect in result if isinstance(result, list) else []:
            self.perform(effect)
        return result

    def perform(self, effect: object) -> None:
        if isinstance(effect, AppendJournal):
            assert self.journal.append(effect.records) == effect.last_lsn
        elif isinstance(effect, Acknowledge):
            if getattr(effect.result, "cause", "") != "halted":
                first = self.answers.setdefault(effect.token, effect.result)
                assert first == effect.result, "one token has one answer"
            if isinstance(effect.result, Bound):
                assert effect.result.lsn <= self.journal.flushed_lsn, (
                    "acknowledged binds are durable"
                )
        elif isinstance(effect, Released):
            ends = [one for one in self.journal.durable if one.uid == effect.uid]
            assert any(one.kind in (RecordKind.DELETE, RecordKind.EVICT) for one in ends)

    @rule(chosen=st.lists(st.tuples(uids, facts), max_size=3))
    def add_pods(self, chosen) -> None:
        self.do(lambda core: core.add_pods([(uid, uid, one) for uid, one in chosen]))

    @rule(
        batch=st.lists(st.tuples(uids, node_names, facts), max_size=3),
        epoch=st.integers(1, 2),
        owner=st.sampled_from(("s", "t")),
    )
    def bind(self, batch, epoch, owner) -> None:
        requests = []
        for uid, node_name, one in batch:
            self.next_token += 1
            token = f"t{self.next_token}"
            requests.append(BindRequest(token, uid, uid, node_name, one, owner, epoch))
        self.sent += requests
        self.do(lambda core: core.bind(requests))

    @rule(data=st.data())
    def bind_again(self, data) -> None:
        if self.sent:
            again = data.draw(st.lists(st.sampled_from(self.sent), max_size=3))
            lsn = self.core.last_lsn
            answered = [one for one in again if one.token in self.answers]
            self.do(lambda core: core.bind(answered))
            assert self.core.last_lsn == lsn, "an answered token has no second effect"
            self.do(lambda core: core.bind(again))

    @rule(share=st.integers(0, 3))
    def flush(self, share) -> None:
        self.journal.flush()
        lsn = max(self.core.flushed_lsn, self.journal.flushed_lsn - share)
        self.do(lambda core: core.flushed(lsn))

    @rule(uid=uids, node_name=node_names, one=facts)
    def load(self, uid, node_name, one) -> None:
        crowd = self.core.placements.store.table.row_facts(node_name)["pod_count"]
        if crowd < PODS_PER_NODE:
            self.do(lambda core: core.load([(uid, uid, one, node_name)]))

    @rule(uid=uids, one=facts)
    def update_pod(self, uid, one) -> None:
        self.do(lambda core: core.update_pods([(uid, one)]))

    @rule(chosen=st.lists(uids, max_size=2))
    def delete(self, chosen) -> None:
        self.do(lambda core: core.delete(chosen))

    @rule(chosen=st.lists(uids, max_size=2))
    def evict(self, chosen) -> None:
        self.do(lambda core: core.evict(chosen))

    @rule(owner=st.sampled_from(("s", "t")), epoch=st.integers(1, 2))
    def advance_epoch(self, owner, epoch) -> None:
        self.do(lambda core: core.advance_epoch(owner, epoch))

    @invariant()
    def binder_is_sound(self) -> None:
        self.core.validate()
        self.core.placements.store.table.validate()

    @invariant()
    def no_node_is_overfull(self) -> None:
        table = self.core.placements.store.table
        assert all(table.row_facts(name)["pod_count"] <= PODS_PER_NODE for name in NODES)

    @invariant()
    def journal_alone_tells_where_every_pod_is(self) -> None:
        on_node: dict[str, str] = {}
        for record in self.journal.records:
            if record.kind in (RecordKind.BIND, RecordKind.LOAD):
                assert record.uid not in on_node, "a pod is bound once"
                on_node[record.uid] = record.node_name
            elif record.kind is RecordKind.ADD:
                assert on_node.get(record.uid, "") == record.node_name, "an update keeps the node"
            else:
                on_node.pop(record.uid, None)
        assert on_node == {
            uid: one.node_name
            for uid, one in self.core.pods.present.items()
            if one.state in (BinderState.TENTATIVE, BinderState.BOUND)
        }

    def teardown(self) -> None:
        self.do(lambda core: core.flush_failed("the end"))
        again = new_binder()
        for command, result in self.log:
            assert outcome(command, again) == result
        assert picture(again) == picture(self.core)


BinderMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
TestBinderMachine = BinderMachine.TestCase
