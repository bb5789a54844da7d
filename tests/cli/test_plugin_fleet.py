"""`roadstead plugin test` on an author's own fleet, and warnings of checks that had no work."""

import pytest

from roadstead.cli.plugin import users_fleet
from tests.cli.manifests import node, pod, write
from tests.cli.plugins import checks, plugin_file

ONLY_ZONE = """
    class P(NodePlugin):
        name = "P"
        reads = Reads.NODE
        shares_by_shape = True

        def filter(self, pod, node):
            zone = node.labels.get("topology.kubernetes.io/zone")
            return SUCCESS if zone == ZONE else unschedulable("another zone")

        def sign(self, pod):
            return ()
"""


def in_zone(folder, zone):
    plugin_file(folder, f"zone_{zone}", ONLY_ZONE.replace("ZONE", repr(zone)))
    return f"zone_{zone}:P"


def test_a_plugin_is_tested_on_given_manifests(run, here, cluster, pods):
    path = in_zone(here, "a")

    code, found = checks(run, path, "--cluster", cluster, "--pods", pods)
    shown = run("plugin", "test", path, "--cluster", cluster, "--pods", pods)

    assert code == 0
    assert found["filter"] == ("ok", "refuses nodes for 3 of 3 pods, 3 nodes in total")
    assert found["placements"] == (
        "ok",
        "placed on another node than without the plugin: 1 of 3 pods; on no node: 1",
    )
    assert "3 nodes, 1 running pods, 3 pending" in " ".join(shown.output.split())


def test_pods_without_a_node_because_of_the_plugin_are_counted(run, here, cluster, pods):
    code, found = checks(run, in_zone(here, "z"), "--cluster", cluster, "--pods", pods)

    assert code == 0
    assert found["placements"][1].endswith("; on no node: 2")
    assert found["filter"][0] == "warning"
    assert "refused every node for every pod" in found["filter"][1]


def test_a_filter_that_never_refused_is_a_warning_and_with_strict_a_failure(
    run, here, tmp_path, pods
):
    nodes = write(tmp_path / "nodes.json", node("n1", zone="a"), node("n2", zone="a"))
    fleet = (in_zone(here, "a"), "--cluster", nodes, "--pods", pods)

    code, found = checks(run, *fleet)
    strict, _ = checks(run, *fleet, "--strict")
    shown = run("plugin", "test", *fleet)

    assert (code, strict) == (0, 1)
    assert found["filter"][0] == "warning"
    assert "Add a pod (--pods) or a node (--cluster) that it should refuse" in found["filter"][1]
    assert "No check failed; 1 warned (--strict: exit status 1)" in shown.output


SCORES = """
    from roadstead.framework.plugin import PreScorePlugin
    from roadstead.protocol.status import SKIP

    class Same(NodePlugin):
        name = "Same"

        def score(self, pod, node):
            return 7

        def sign(self, pod):
            return ()

    class Skips(PreScorePlugin, ScorePlugin):
        name = "Skips"
        reads = Reads.NODE

        def pre_score(self, state, pod, table, feasible):
            return SKIP

        def score(self, state, pod, table):
            return table.pod_count * 0

        def sign(self, pod):
            return ()
"""


@pytest.mark.parametrize(
    ("name", "text"),
    [("Same", "the scores of all nodes were equal"), ("Skips", "the plugin scored no node")],
)
def test_scores_without_effect_are_a_warning(run, here, name, text):
    plugin_file(here, "scores", SCORES)

    code, found = checks(run, f"scores:{name}")

    assert code == 0
    assert found["score"][0] == "warning"
    assert text in found["score"][1]
    assert "the plugin changes no placement" in found["placements"][1]


HOOKS = """
    from roadstead.framework.events import ActionType, EventResource, QueueingHint, on
    from roadstead.framework.plugin import BindPlugin, EnqueueExtensions, PostFilterPlugin
    from roadstead.framework.post_filter_answers import PostFilterResult

    class Waits(PermitPlugin):
        name = "Waits"

        def permit(self, pod, facts, node_name):
            return SUCCESS, 0.0

    class Fails(PermitPlugin):
        name = "Fails"

        def permit(self, pod, facts, node_name):
            raise KeyError("zone")

    class Binds(BindPlugin, PostFilterPlugin):
        name = "Binds"

        def bind(self, pod, facts, node_name):
            return SUCCESS

        def post_filter(self, pod, failed):
            return PostFilterResult(unschedulable("no"))

    class Hints(EnqueueExtensions, FilterPlugin):
        name = "Hints"
        reads = Reads.NODE

        def filter(self, state, pod, table):
            return FilterResult.refuse(table.pod_count < 0, unschedulable("no"))

        def events_to_register(self):
            return (on(EventResource.NODE, ActionType.ADD, self.hint),)

        def hint(self, pod, change, cluster):
            return QueueingHint.QUEUE

        def sign(self, pod):
            return ()

    class HintsAll(Hints):
        name = "HintsAll"

        def filter(self, state, pod, table):
            return FilterResult.refuse(table.pod_count >= 0, unschedulable("no"))
"""


@pytest.fixture
def small(tmp_path):
    """Write two pods that fit on one node."""
    nodes = write(tmp_path / "nodes.json", node("n1"))
    return "--cluster", nodes, "--pods", write(tmp_path / "two.json", pod("a"), pod("b"))


def test_hooks_other_than_filter_and_score_are_counted_in_a_run(run, here, small):
    plugin_file(here, "hooks", HOOKS)

    code, found = checks(run, "hooks:Waits", *small)

    assert code == 0
    assert found["hooks"] == ("ok", "calls: Permit 2")


def test_uncalled_hooks_are_named_with_the_inputs_they_need(run, here, small):
    plugin_file(here, "hooks", HOOKS)

    code, found = checks(run, "hooks:Binds", *small)

    assert code == 0
    outcome, text = found["hooks"]
    assert outcome == "warning"
    assert "PostFilter was never called: it needs a pod that fits on no node" in text
    assert "Bind was never called" in text
    assert "disables DefaultBinder" in text


def test_hints_are_called_for_pods_refused_by_the_plugin(run, here, small):
    plugin_file(here, "hooks", HOOKS)

    assert "QueueingHint was never called" in checks(run, "hooks:Hints", *small)[1]["hooks"][1]
    assert checks(run, "hooks:HintsAll", *small)[1]["hooks"] == ("ok", "calls: QueueingHint 2")


def test_a_failing_hook_is_named_with_file_line_and_pod(run, here, small):
    plugin_file(here, "hooks", HOOKS)

    code, found = checks(run, "hooks:Fails", *small)

    assert code == 1
    assert found["hooks"] == (
        "failed",
        "plugin \"Fails\" failed at Permit for pod default/a: KeyError: 'zone' (hooks.py:22)",
    )


def test_a_failing_plugin_is_named_with_file_line_and_pod(run, here, cluster, pods):
    plugin_file(here, "torn", ONLY_ZONE.replace("ZONE else", "node.labels['zone'] else"))

    tested = run("plugin", "test", "torn:P", "--cluster", cluster, "--pods", pods)

    assert tested.exit_code == 1
    text = " ".join(tested.output.split())
    assert "KeyError: 'zone' (torn.py:15), for pod default/small" in text


def test_many_pods_are_tested_one_per_shape_first(run, here, tmp_path, monkeypatch):
    monkeypatch.setattr(users_fleet, "PODS_MAX", 2)
    nodes = write(tmp_path / "nodes.json", node("n1", zone="a"))
    pods = write(tmp_path / "many.json", pod("a"), pod("b"), pod("c"), pod("large", "2"))

    done = run("plugin", "test", in_zone(here, "a"), "--cluster", nodes, "--pods", pods)

    assert "Used: 2 of 4 pending pods" in done.stderr
    assert "the plugin changes no placement" in " ".join(done.stdout.split())


def test_pods_of_another_scheduler_are_tested_with_a_note(run, here, tmp_path):
    nodes = write(tmp_path / "nodes.json", node("n1", zone="a"))
    pods = write(tmp_path / "other.json", pod("a", schedulerName="mine"))

    done = run("plugin", "test", in_zone(here, "a"), "--cluster", nodes, "--pods", pods)

    assert done.exit_code == 0
    assert "Pods of other schedulers (mine) are used" in done.stderr


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (("--cluster", "{nodes}", "--nodes", 5), "--seeds and --nodes exclude --cluster"),
        (("--pods", "{nodes}"), "--pods needs --cluster"),
        (("--cluster", "{nodes}"), "has no pending pods"),
        (("--cluster", "{pods}"), "has no nodes"),
    ],
)
def test_an_unusable_fleet_is_refused(run, here, tmp_path, flags, text):
    paths = {
        "nodes": write(tmp_path / "nodes.json", node("n1")),
        "pods": write(tmp_path / "one.json", pod("a")),
    }

    done = run("plugin", "test", in_zone(here, "a"), *(str(f).format(**paths) for f in flags))

    assert done.exit_code == 2
    assert text in done.stderr
