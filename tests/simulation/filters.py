"""The plugins' own filters, each called by itself; nothing is cached between calls."""

import numpy as np

from roadstead.config.model import default_config
from roadstead.framework.cycle_state import CycleState
from roadstead.framework.plugin import (
    FilterPlugin,
    Handle,
    PreFilterPlugin,
    Reads,
)
from roadstead.framework.profile import Profile
from roadstead.nodes.pod_class import PodClasses
from roadstead.nodes.table import NodeTable
from roadstead.plugins.in_tree import in_tree_registry
from roadstead.storage import AssumedClaims
from tests.peculiar_plugins import ACROSS, DECIDING, peculiar


class Filters:
    """The plugins' own results for the nodes and pods that were added here."""

    def __init__(self, cluster):
        self._classes = PodClasses()
        self.table = NodeTable(self._classes)
        handle = Handle(self._classes, cluster)
        self._profile = Profile(default_config().profiles[0], in_tree_registry(), handle)
        self.assumed_claims = AssumedClaims(self._profile.storage)

    @property
    def names(self):
        return tuple(plugin.name for plugin in self._profile.filter)

    def node(self, facts, pods):
        """Add or replace a node. pods: (uid, facts) of the pods on it."""
        if self.table.has_node(facts.name):
            self.table.update_node(facts)
            return
        self.table.add_node(facts)
        for uid, each in pods:
            self.put(uid, facts.name, each)

    def node_removed(self, name):
        if self.table.has_node(name):
            self.table.remove_node(name)

    def put(self, uid, name, facts):
        if self.table.has_node(name):
            self.table.add_pod(name, self._classes.pod_class(facts), uid=uid, key=uid)

    def take(self, uid, name, facts):
        if self.table.has_node(name):
            self.table.remove_pod(name, self._classes.pod_class(facts), uid=uid)

    def refusals(self, facts):
        """Return plugin → names of the nodes that it refuses, each plugin called by itself.

        `fails_on` lists a volume plugin that fails for a claim that VolumeBinding refuses.
        """
        pod_class, state = self._classes.pod_class(facts), CycleState(len(self.table))
        before, self.fails_on = {}, {}
        for plugin in self._profile.pre_filter:
            before[plugin.name] = plugin.pre_filter(state, pod_class, self.table)
        return {
            plugin.name: self._refused(plugin, before.get(plugin.name), state, pod_class)
            for plugin in self._profile.filter
        }

    def _refused(self, plugin, before, state, pod_class):
        names = self.table.names
        if before is not None and before.status.is_skip:
            return frozenset()
        if before is not None and not before.status.is_success:
            if plugin.name == "VolumeRestrictions":
                self.fails_on[plugin.name] = set(names)
            return frozenset(names)
        result = plugin.filter(state, pod_class, self.table)
        codes = np.zeros(len(names), np.int32) if result.codes is None else result.codes
        refused = {names[row] for row in np.flatnonzero(codes).tolist()}
        if plugin.name == "NodeVolumeLimits":
            # VolumeBinding refuses a claim that the pod may not use.
            failed = np.flatnonzero(codes > 1).tolist()
            self.fails_on[plugin.name] = {names[row] for row in failed}
        if before is not None and before.node_names is not None:
            refused |= set(names) - before.node_names
        return frozenset(refused)


class UsersFilters:
    """The filters of a plan's own plugins. world: the nodes, and the pods on them."""

    def __init__(self, plan, world):
        known = (*DECIDING, *ACROSS)
        asked = [each() for each in known if set(peculiar(each.name)) & set(plan.plugins)]
        self._before = [each for each in asked if isinstance(each, PreFilterPlugin)]
        self._filters = [each for each in asked if isinstance(each, FilterPlugin)]
        self._looks_across = any(each.reads is Reads.CLUSTER for each in self._before)
        self._world = world

    def passed(self, facts):
        """Names of the nodes that none of them refuses."""
        table = self._table()
        pod_class, state = table.classes.pod_class(facts), CycleState(len(table))
        names = set(table.names)
        for plugin in self._before:
            try:
                result = plugin.pre_filter(state, pod_class, table)
            except RuntimeError:
                return set()
            names &= names if result.node_names is None else result.node_names
            if not (result.status.is_success or result.status.is_skip):
                return set()
            if result.status.is_skip:
                state.skipped.add(plugin.name)
        for plugin in (each for each in self._filters if each.name not in state.skipped):
            codes = plugin.filter(state, pod_class, table).codes
            refused = () if codes is None else np.flatnonzero(codes).tolist()
            names -= {table.names[row] for row in refused}
        return names

    def _table(self):
        table = NodeTable(PodClasses())
        for facts in self._world.nodes.values():
            table.add_node(facts)
        for name, pods in self._world.pods.items() if self._looks_across else ():
            for facts in pods.values() if table.has_node(name) else ():
                table.add_pod(name, table.classes.pod_class(facts))
        return table
