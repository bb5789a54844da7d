"""After any events the cache equals a rebuild, a copy built from its deltas, and a replay."""

from collections.abc import Callable

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from roadstead.cache import (
    Assumption,
    BinderAnswer,
    CacheCore,
    CacheResult,
    CacheSettings,
    CacheState,
    Delta,
    DeltaKind,
    PodOnNode,
    TableStore,
)
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import HostPort, PodFacts
from roadstead.protocol.errors import IllegalTransitionError
from tests.inside import next_deadline_s

FACTS = (
    PodFacts(requests=(("cpu", 100), ("memory", 5))),
    PodFacts(requests=(("cpu", 300), ("example.com/gpu", 1))),
    PodFacts(labels=(("a", "b"),), host_ports=(HostPort("0.0.0.0", "TCP", 80),)),
)
NODES = ("n1", "n2", "n3")
SETTINGS = CacheSettings(assume_s=50.0, bind_s=10.0, ask_again_s=3.0, max_gone_remembered=2)

uids = st.sampled_from([f"u{number}" for number in range(5)])
node_names = st.sampled_from(NODES)
facts = st.sampled_from(FACTS)
tokens = st.sampled_from(("t1", "t2"))
attempts = st.lists(st.tuples(uids, tokens), max_size=3)

Command = Callable[[CacheCore], object]


def outcome(command: Command, core: CacheCore) -> object:
    try:
        return command(core)
    except IllegalTransitionError as error:
        return str(error)


def rows(store: TableStore) -> dict[str, object]:
    return {name: store.table.row_facts(name) for name in store.node_names()}


def picture(core: CacheCore) -> object:
    pods = {uid: (record.state, record.history) for uid, record in core.pods.present.items()}
    return (
        pods,
        list(core.pods.ended),
        core.version,
        next_deadline_s(core),
        rows(core.placements.store),
    )


def apply(store: TableStore, delta: Delta) -> None:
    if delta.kind is DeltaKind.ADD_POD:
        store.add_pod(delta.node_name, delta.pod)
    elif delta.kind is DeltaKind.REMOVE_POD:
        store.remove_pod(delta.node_name, delta.pod)
    elif delta.kind is DeltaKind.ADD_NODE:
        store.add_node(delta.node)
    elif delta.kind is DeltaKind.UPDATE_NODE:
        store.update_node(delta.node)
    else:
        store.remove_node(delta.node_name)


class CacheMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.core = CacheCore(TableStore(), SETTINGS)
        self.worker = TableStore()
        self.version = 0
        self.now_s = 0.0
        self.undone = 0
        self.log: list[tuple[Command, object]] = []

    def do(self, command: Command) -> object:
        before = picture(self.core)
        result = outcome(command, self.core)
        self.log.append((command, result))
        if isinstance(result, str):
            assert picture(self.core) == before, "an illegal event changes nothing"
            return result
        deltas = result.deltas if isinstance(result, CacheResult) else result
        for delta in deltas:
            if isinstance(delta, Delta):
                self.version += 1
                assert delta.version == self.version, "versions have no gaps"
                apply(self.worker, delta)
        return result

    @rule(batch=st.lists(st.tuples(uids, facts, node_names, tokens), max_size=3))
    def assume(self, batch) -> None:
        items = [Assumption(uid, uid, one, name, token) for uid, one, name, token in batch]
        now_s = self.now_s
        self.do(lambda core: core.assume(items, now_s))

    @rule(batch=st.lists(st.tuples(uids, facts, node_names), max_size=3))
    def assume_then_forget_leaves_no_trace(self, batch) -> None:
        # A new token each time: a pod may still be assumed under the previous one.
        self.undone += 1
        token = f"undo-{self.undone}"
        before, now_s = rows(self.core.placements.store), self.now_s
        items = [Assumption(uid, uid, one, name, token) for uid, one, name in batch]
        done = self.do(lambda core: core.assume(items, now_s))
        refused = {refusal.uid for refusal in done.refused}
        undone = [(item.uid, token) for item in items if item.uid not in refused]
        self.do(lambda core: core.forget(undone))
        if not any(uid in refused for uid in {item.uid for item in items}):
            assert rows(self.core.placements.store) == before

    @rule(batch=attempts)
    def forget(self, batch) -> None:
        self.do(lambda core: core.forget(batch))

    @rule(batch=attempts)
    def finish_binding(self, batch) -> None:
        now_s = self.now_s
        self.do(lambda core: core.finish_binding(batch, now_s))

    @rule(batch=st.lists(st.tuples(uids, facts, node_names), max_size=3))
    def confirm(self, batch) -> None:
        items = [PodOnNode(uid, uid, one, name) for uid, one, name in batch]
        self.do(lambda core: core.confirm(items))

    @rule(chosen=st.lists(uids, max_size=12))
    def confirm_assumed(self, chosen) -> None:
        self.do(lambda core: core.confirm_assumed(chosen) or ())

    @rule(uid=uids, new=facts, node_name=node_names)
    def update_pod(self, uid, new, node_name) -> None:
        self.do(lambda core: core.update_pod(uid, new, node_name))

    @rule(chosen=st.lists(uids, max_size=2))
    def remove_pods(self, chosen) -> None:
        self.do(lambda core: core.remove_pods(chosen))

    @rule(
        step_s=st.sampled_from((1.0, 10.0, 60.0)),
        bound=st.none() | node_names,
        answers=st.booleans(),
    )
    def time_passes(self, step_s, bound, answers) -> None:
        self.now_s += step_s
        now_s = self.now_s
        asks = self.do(lambda core: core.expire(now_s))
        assert all(self.core.state_of(ask.uid) is CacheState.ASKED for ask in asks)
        binder_answers = (
            [BinderAnswer(ask.uid, ask.token, bound) for ask in asks] if answers else []
        )
        self.do(lambda core: core.resolve(binder_answers))

    @rule(name=node_names, cordoned=st.booleans())
    def add_node(self, name, cordoned) -> None:
        self.do(lambda core: core.add_node(NodeFacts(name, unschedulable=cordoned)))

    @rule(name=node_names)
    def remove_node(self, name) -> None:
        self.do(lambda core: core.remove_node(name))

    @invariant()
    def cache_is_sound(self) -> None:
        self.core.validate()
        self.core.placements.store.table.validate()

    @invariant()
    def cache_equals_its_rebuild(self) -> None:
        again = self.core.rebuild(TableStore())
        again.validate()
        assert self.core.compare(again) == []
        assert rows(again.placements.store) == rows(self.core.placements.store)

    @invariant()
    def worker_that_follows_the_deltas_has_the_same_rows(self) -> None:
        assert rows(self.worker) == rows(self.core.placements.store)

    def teardown(self) -> None:
        again = CacheCore(TableStore(), SETTINGS)
        for command, result in self.log:
            assert outcome(command, again) == result
        assert picture(again) == picture(self.core)


CacheMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
TestCacheMachine = CacheMachine.TestCase
