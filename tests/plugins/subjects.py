"""In-tree plugins as subjects of the checks for users' plugins."""

from roadstead.cli.plugin.plugin_under_test import PluginUnderTest
from roadstead.config.model import SchedulerConfig
from roadstead.facts.cluster import ClusterFacts
from roadstead.framework.plugin import Handle
from roadstead.framework.registry import extension_points
from roadstead.nodes.pod_class import PodClasses
from roadstead.plugins.in_tree import in_tree_registry
from roadstead.run import RunPlan


def in_tree_subject(name, profile):
    """Return an in-tree plugin as it is in a profile."""
    registry = in_tree_registry()
    handle = Handle(PodClasses(), ClusterFacts(namespaces=(("demo", ()), ("other", ()))))
    kind = type(registry.build(name, profile.args.get(name), handle))
    plan = RunPlan(cluster=handle.cluster)
    return PluginUnderTest(
        kind, extension_points(kind), registry, SchedulerConfig((profile,)), plan
    )
