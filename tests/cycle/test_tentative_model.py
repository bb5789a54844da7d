"""Any order of decisions and cache reports: the table holds each pod once."""

from collections import Counter

from hypothesis import example, given, settings
from hypothesis import strategies as st

from roadstead.cycle.batch import Decision, PodInCycle
from roadstead.cycle.tentative import Tentative
from tests.builders import node, pod, table_of

NODES = ("n1", "n2")
FACTS = {
    "a": pod(cpu=100, nominated_node_name="n1"),
    "b": pod(cpu=100, nominated_node_name="n1"),
    "c": pod(cpu=100),
    "d": pod(cpu=200),
}
uids, names = st.sampled_from(sorted(FACTS)), st.sampled_from(NODES)
decisions = st.dictionaries(uids, st.none() | names, min_size=1)
steps = st.one_of(
    st.tuples(st.just("decide"), decisions),
    st.tuples(st.just("decide"), decisions),
    st.tuples(st.just("come"), st.dictionaries(uids, names, min_size=1)),
    st.tuples(st.just("leave"), uids),
    st.tuples(st.just("nominate"), uids, names),
    st.tuples(st.just("withdraw"), uids),
    st.tuples(st.just("rest")),
)


class World:
    """A scheduler's table, and a model of the decisions and the cache's reports."""

    def __init__(self):
        self.table = table_of(*map(node, NODES))
        self.pod_classes = {
            uid: self.table.classes.pod_class(facts) for uid, facts in FACTS.items()
        }
        self.tentative = Tentative(self.table)
        self.decided, self.reported, self.nominated = {}, {}, {}
        self.overruled = set()

    def decide(self, chosen):
        pods = {uid: PodInCycle(uid, f"d/{uid}", self.pod_classes[uid], "") for uid in chosen}
        self.tentative.remove_from_table(list(pods.values()))
        for uid, name in chosen.items():
            self.decided.pop(uid, None)
            self.overruled.discard(uid)
            if self.nominated.get(uid, named := FACTS[uid].nominated_node_name) != named:
                self.overruled.add(uid)
            if name is not None:
                self.decided[uid] = name
                # A batch does the same.
                self.table.add_pod(name, self.pod_classes[uid], uid=uid, key=f"d/{uid}")
                if named := FACTS[uid].nominated_node_name:
                    self.table.withdraw(named, self.pod_classes[uid])
        self.tentative.record_decisions([Decision(pods[uid], name) for uid, name in chosen.items()])

    def come(self, chosen):
        """Apply the cache's report of pods on nodes, which ends their nominations."""
        chosen = {uid: name for uid, name in chosen.items() if uid not in self.reported}
        for uid in chosen:
            self.withdraw(uid)
        pod_classes = [self.pod_classes[uid] for uid in chosen]
        places = self.tentative.confirm(list(chosen), list(chosen.values()), pod_classes)
        assert places == [
            place for place, uid in enumerate(chosen) if self.decided.get(uid) != chosen[uid]
        ]
        for place in places:
            uid = list(chosen)[place]
            self.table.add_pod(chosen[uid], self.pod_classes[uid], uid=uid, key=f"d/{uid}")
        for uid in chosen:
            self.decided.pop(uid, None)
        self.reported |= chosen

    def leave(self, uid):
        if (name := self.reported.pop(uid, None)) and not self.tentative.forget_removal(uid, name):
            self.table.remove_pod(name, self.pod_classes[uid], uid=uid)

    def nominate(self, uid, name):
        if uid not in {**self.nominated, **self.decided, **self.reported}:
            self.nominated[uid] = name
            self.tentative.nominate(uid, name, self.pod_classes[uid])

    def withdraw(self, uid):
        self.overruled.discard(uid)
        if (name := self.nominated.pop(uid, None)) is not None:
            self.tentative.withdraw(uid, name, self.pod_classes[uid])

    def rest(self):
        self.tentative.undo_unconfirmed()
        self.decided.clear()
        self.overruled.clear()

    def check(self):
        """Check that each pod is on its decided node, else on the node that the cache reports.

        A pod with a decided node is not nominated; a pod whose lease contradicts the cache is
        nominated only to the node that it names.
        """
        stands = self.reported | self.decided
        assert len(self.tentative) == len(self.decided)
        for name in NODES:
            there = {each.uid for each in self.table.residents.on(name)}
            assert there == {uid for uid, where in stands.items() if where == name}
            assert self.table.row_facts(name)["pod_count"] == len(there)
        expected = Counter(
            (name, self.table.as_nominated(self.pod_classes[uid]))
            for uid, name in self.nominated.items()
            if uid not in self.decided and uid not in self.overruled
        )
        nominations = self.table.nominations
        found = {
            (name, pod_class): n for name in NODES for pod_class, n in nominations.to(name).items()
        }
        assert found == expected
        apart = {name for uid, name in self.reported.items() if uid in self.decided}
        assert self.tentative.nodes() >= {*self.decided.values(), *apart}


@settings(deadline=None, max_examples=200)
@given(st.dictionaries(uids, names), st.lists(steps, max_size=15))
@example({"a": "n1", "b": "n1", "c": "n1"}, [("decide", {"a": "n2"}), ("decide", {"b": "n2"})])
@example({"a": "n1", "b": "n1"}, [("decide", {"a": "n2"}), ("rest",), ("decide", {"b": "n2"})])
@example({"a": "n2", "b": "n2"}, [("decide", {"a": "n1"}), ("withdraw", "b"), ("rest",)])
@example({"a": "n2", "c": "n1"}, [("decide", {"a": None, "c": None}), ("decide", {"c": "n2"})])
def test_a_pod_is_on_its_decided_node_or_where_the_cache_reports(nominated, program):
    world = World()
    for uid, name in nominated.items():
        world.nominate(uid, name)
    for name, *reported in program:
        getattr(world, name)(*reported)
        world.check()
    world.rest()
    world.check()
    assert world.tentative.nodes() == set()
    world.table.validate()
