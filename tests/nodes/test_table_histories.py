"""After any history the table equals one that is built from the remaining nodes and pods."""

from dataclasses import replace

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from roadstead.facts.node import HOSTNAME_LABEL, NAME_PLACEHOLDER, class_of_node, named_node
from roadstead.facts.node_list import NodeList
from roadstead.nodes.table import NodeTable, name_hash
from tests.builders import table_of
from tests.strategies import NODE_NAMES, nodes, small_pods


def with_hostname(node_class):
    labels = dict(node_class.labels) | {HOSTNAME_LABEL: NAME_PLACEHOLDER}
    return replace(node_class, labels=tuple(sorted(labels.items())))


class History(RuleBasedStateMachine):
    """The table and a model of it: name → (facts, its pods)."""

    def __init__(self):
        super().__init__()
        self.table = NodeTable()
        self.model = {}
        self.seen = 0
        self.nodes_seen = 0
        self.touched = set()

    @initialize(first=st.lists(nodes(), max_size=6, unique_by=lambda facts: facts.name))
    def start(self, first):
        for facts in first:
            self.table.add_node(facts)
            self.model[facts.name] = (facts, [])
        self.look()

    def look(self):
        self.seen, self.nodes_seen = self.table.version, self.table.node_version
        self.touched = set()

    def some_node(self, pick):
        return sorted(self.model)[pick % len(self.model)]

    @precondition(lambda self: len(self.model) < len(NODE_NAMES))
    @rule(facts=nodes())
    def add_or_update_node(self, facts):
        if facts.name in self.model:
            self.table.update_node(facts)
            self.model[facts.name] = (facts, self.model[facts.name][1])
        else:
            self.table.add_node(facts)
            self.model[facts.name] = (facts, [])
        assert self.table.node_version > self.nodes_seen
        self.look()

    @rule(
        many=st.lists(nodes(), max_size=6, unique_by=lambda facts: facts.name),
        reports_hostname=st.booleans(),
    )
    def add_many_nodes(self, many, reports_hostname):
        new = [facts for facts in many if facts.name not in self.model]
        if reports_hostname:
            new = [named_node(with_hostname(class_of_node(facts)), facts.name) for facts in new]
        self.table.add_nodes(NodeList.of(new))
        self.model |= {facts.name: (facts, []) for facts in new}
        assert (self.table.node_version > self.nodes_seen) == bool(new)
        self.look()

    @rule()
    def ask_for_what_is_found_late(self):
        self.table.columns.label(HOSTNAME_LABEL)
        assert self.table.name_hashes.tolist() == [name_hash(name) for name in self.table.names]

    @precondition(lambda self: self.model)
    @rule(pick=st.integers(0, 7))
    def remove_node(self, pick):
        name = self.some_node(pick)
        self.table.remove_node(name)
        del self.model[name]
        assert self.table.node_version > self.nodes_seen
        self.look()

    @precondition(lambda self: self.model)
    @rule(pick=st.integers(0, 7), facts=small_pods, count=st.integers(1, 2))
    def add_pods(self, pick, facts, count):
        name = self.some_node(pick)
        row = self.table.add_pod(name, self.table.classes.pod_class(facts), count)
        assert self.table.names[row] == name
        self.model[name][1].extend([facts] * count)
        self.touched.add(name)

    @precondition(lambda self: self.model)
    @rule(
        picks=st.lists(st.integers(0, 7), min_size=1, max_size=12),
        kinds=st.lists(small_pods, min_size=1, max_size=2),
    )
    def add_many_pods(self, picks, kinds):
        names = [self.some_node(pick) for pick in picks]
        pods = [kinds[place % len(kinds)] for place in range(len(names))]
        rows = [self.table.row_of(name) for name in names]
        self.table.add_pods(rows, [self.table.classes.pod_class(facts) for facts in pods])
        for name, facts in zip(names, pods, strict=True):
            self.model[name][1].append(facts)
            self.touched.add(name)

    @precondition(lambda self: any(pods for _, pods in self.model.values()))
    @rule(pick=st.integers(0, 7), which=st.integers(0, 7))
    def remove_pod(self, pick, which):
        holders = sorted(name for name, (_, pods) in self.model.items() if pods)
        name = holders[pick % len(holders)]
        pods = self.model[name][1]
        facts = pods.pop(which % len(pods))
        row = self.table.remove_pod(name, self.table.classes.pod_class(facts))
        assert self.table.names[row] == name
        self.touched.add(name)

    @precondition(lambda self: self.model)
    @rule(pick=st.integers(0, 7), facts=small_pods)
    def add_and_forget(self, pick, facts):
        name = self.some_node(pick)
        before = self.table.row_facts(name)
        self.table.add_pod(name, self.table.classes.pod_class(facts))
        self.table.remove_pod(name, self.table.classes.pod_class(facts))
        assert self.table.row_facts(name) == before
        self.touched.add(name)

    @rule()
    def reader_catches_up(self):
        self.look()

    @precondition(lambda self: self.model)
    @rule(picks=st.lists(st.integers(0, 7), max_size=3), facts=small_pods)
    def try_out_on_an_overlay(self, picks, facts):
        names = sorted({self.some_node(pick) for pick in picks})
        overlay = self.table.copy_rows(self.table.rows_of(names))
        for name in names:
            overlay.add_pod(name, overlay.classes.pod_class(facts))
        overlay.validate()
        assert overlay.rows_changed_since(0).tolist() == list(range(len(names)))

    @invariant()
    def equals_a_rebuild(self):
        self.table.validate()
        rebuilt = table_of(*(facts for facts, _ in self.model.values()), classes=self.table.classes)
        for name, (_, pods) in self.model.items():
            for facts in pods:
                rebuilt.add_pod(name, rebuilt.classes.pod_class(facts))
        assert self.table.differences(rebuilt) == []
        assert self.table.class_counts == rebuilt.class_counts

    @invariant()
    def versions_only_grow(self):
        assert self.table.version >= self.seen
        assert self.table.node_version >= self.nodes_seen

    @invariant()
    def changed_rows_are_those_that_pods_touched(self):
        changed = self.table.rows_changed_since(self.seen)
        assert {self.table.names[row] for row in changed} == self.touched

    @invariant()
    def free_rows_hold_nothing(self):
        columns = self.table.columns
        free = slice(columns.size, columns.capacity)
        assert not any(
            np.any(getattr(columns, name)[..., free]) for name in columns.numeric_columns()
        )
        assert all((column.codes[free] == -1).all() for column in columns.labels.values())


History.TestCase.settings = settings(max_examples=80, stateful_step_count=30, deadline=None)
TestHistory = History.TestCase
