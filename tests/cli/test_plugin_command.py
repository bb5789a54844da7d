import json
import subprocess
import sys

import pytest

from roadstead.api import plugin_choice
from roadstead.api.plugin_choice import choose_plugins
from roadstead.cli.plugin import listing as plugin_list
from roadstead.cli.plugin.files import module_of
from roadstead.config.intree import IN_TREE_POINTS, OPTIONAL_POINTS
from roadstead.protocol.errors import InputError
from tests.cli.plugins import checks, plugin_file


def test_a_new_plugin_is_written_with_its_test_and_never_overwritten(run, here):
    first = run("plugin", "new", "FewPods")
    (here / "few_pods.py").write_text("mine = 1\n")
    again = run("plugin", "new", "FewPods")

    assert first.exit_code == again.exit_code == 0
    assert "Try it: roadstead plugin test few_pods:FewPods" in first.output
    assert "Kept few_pods.py" in again.output
    assert (here / "few_pods.py").read_text() == "mine = 1\n"
    assert "Wrote few_pods.py" in run("plugin", "new", "FewPods", "--force").output
    assert (here / "few_pods.py").read_text() != "mine = 1\n"


@pytest.mark.parametrize("form", [[], ["--per-node"]])
def test_a_generated_plugin_passes_its_own_test_and_every_check(run, here, form):
    name = "NewNode" if form else "NewTable"
    assert "cd own && " in run("plugin", "new", name, "--output", "own", *form).output

    (here / "conftest.py").write_text("")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "own"],
        env={"PYTHONPATH": f"{sys.path[0]}:{_root()}:{here / 'own'}"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout


def _root():
    import roadstead

    return roadstead.__path__[0].removesuffix("/roadstead")


@pytest.mark.parametrize("name", ["few-pods", "fewPods", "", "a/b", "X" * 80])
def test_an_invalid_class_name_is_refused(run, here, name):
    done = run("plugin", "new", name)

    assert done.exit_code == 2
    assert "is not a name of a plugin class" in done.output


def test_a_folder_that_can_not_be_created_is_reported(run, here):
    (here / "file").write_text("")

    done = run("plugin", "new", "FewPods", "--output", "file/below")

    assert done.exit_code == 2
    assert "cannot be made" in done.output


@pytest.mark.parametrize(
    ("name", "module"),
    [("FewPods", "few_pods"), ("GPUShare", "gpu_share"), ("FGD", "fgd"), ("X2Y", "x2_y")],
)
def test_the_module_has_the_name_of_the_class(name, module):
    assert module_of(name) == module


def test_a_correct_plugin_passes_and_its_speed_is_shown(run, here):
    run("plugin", "new", "Sound", "--per-node")

    done = run("plugin", "test", "sound:Sound", "--args", '{"maxPods": 3}', "--seeds", 1)

    assert done.exit_code == 0
    assert "All checks passed" in done.output
    assert "speed" in done.output
    code, found = checks(run, "sound:Sound")
    assert code == 0
    assert {outcome for outcome, _ in found.values()} == {"ok"}
    assert found["score"][1] == "scores differ between nodes for 35 of 36 pods"


def test_omitted_declarations_of_a_plugin_are_tested_and_reported(run, here):
    code = """
        from dataclasses import dataclass
        from roadstead.framework.plugin import PreFilterPlugin, PreFilterResult

        class Plain(FilterPlugin):
            name = "Plain"

            def filter(self, state, pod, table):
                return FilterResult.refuse(table.pod_count > 5, unschedulable("full"))

        class Spoken(Plain):
            name = "Spoken"
            reads = Reads.ROW
            shares_by_shape = True

            def sign(self, pod):
                return ()

            def count_passing(self, pods, table, rows):
                return False

        @dataclass(frozen=True)
        class Pods:
            number: int

        class Broad(PreFilterPlugin, FilterPlugin):
            name = "Broad"
            shares_by_shape = True

            def pre_filter(self, state, pod, table):
                state.write(self.name, Pods(sum(table.class_counts.values())))
                return PreFilterResult()

            def filter(self, state, pod, table):
                most = state.read(self.name, Pods).number % 3
                return FilterResult.refuse(table.pod_count > most, unschedulable("many"))
    """
    plugin_file(here, "hooks", code)

    _, plain = checks(run, "hooks:Plain")
    _, spoken = checks(run, "hooks:Spoken")
    _, broad = checks(run, "hooks:Broad")

    message = plain["left out"][1]
    assert message.startswith("reads = Reads.ROW holds on these fleets")
    assert "shares_by_shape = True holds" in message
    assert "without count_passing" in message
    assert "left out" not in spoken
    assert broad["left out"][1].startswith("without effect, each placement invalidates")


BROKEN = {
    "greedy": (
        "shapes",
        """
        import numpy as np

        class P(FilterPlugin):
            name = "P"
            reads = Reads.CLUSTER
            shares_by_shape = True

            def sign(self, pod):
                return pod.requests

            def filter(self, state, pod, table):
                asks_much = pod.nonzero[0] > 10_000
                refused = np.full(len(table), asks_much)
                return FilterResult.refuse(refused, unschedulable("asks for much"))
        """,
        "does `shares_by_shape` hold?",
    ),
    "forgetful": (
        "signature",
        """
        class P(NodePlugin):
            name = "P"

            def score(self, pod, node):
                return 10 if pod.facts.host_ports else 5

            def sign(self, pod):
                return ()
        """,
        "another host_ports, which the signature leaves out",
    ),
    "boundless": (
        "answers",
        """
        class P(NodePlugin):
            name = "P"

            def score(self, pod, node):
                return 50 * node.pod_count - 200
        """,
        "returns an invalid score -200, it should in the range of [0, 100] after normalizing",
    ),
    "moody": (
        "deterministic",
        """
        import itertools

        class P(NodePlugin):
            name = "P"
            calls = itertools.count()

            def score(self, pod, node):
                return next(self.calls) % 7

            def sign(self, pod):
                return ()
        """,
        "on a second call",
    ),
    "careless": (
        "leaves the table",
        """
        class P(ScorePlugin):
            name = "P"
            reads = Reads.ROW

            def score(self, state, pod, table):
                table.columns.unschedulable[:] = True
                return table.pod_count * 0
        """,
        "the plugin changed the table",
    ),
    "shortsighted": (
        "reads",
        """
        class P(NodePlugin):
            name = "P"
            reads = Reads.NODE

            def score(self, pod, node):
                return min(100, node.pod_count)
        """,
        "does `reads = Reads.NODE` hold?",
    ),
    "nearsighted": (
        "reads",
        """
        import numpy as np
        from roadstead.framework.plugin import PreScorePlugin

        class P(PreScorePlugin, ScorePlugin):
            name = "P"
            reads = Reads.ROW

            def pre_score(self, state, pod, table, feasible):
                state.write(self.name, sum(table.class_counts.values()))
                return SUCCESS

            def score(self, state, pod, table):
                return np.full(len(table), state.read(self.name, int) % 101)
        """,
        "does `reads = Reads.ROW` hold?",
    ),
    "blind": (
        "shapes",
        """
        class P(NodePlugin):
            name = "P"
            reads = Reads.NODE
            shares_by_shape = True

            def score(self, pod, node):
                return pod.facts.nonzero_cpu_milli % 101
        """,
        "does `shares_by_shape` hold?",
    ),
    "sweeping": (
        "effects",
        """
        class P(FilterPlugin):
            name = "P"
            reads = Reads.CLUSTER

            def filter(self, state, pod, table):
                return FilterResult()

            def effect(self, placed):
                return Effect(placed.facts.namespace, lambda pod: placed.facts.priority > 0)
        """,
        "and a pod of equal effect change the answers for different pods",
    ),
    "broken": (
        "answers",
        """
        class P(NodePlugin):
            name = "P"

            def filter(self, pod, node):
                raise RuntimeError("no luck")
        """,
        'plugin "P" failed at Filter: RuntimeError: no luck (broken.py:12), for pod demo/pod-',
    ),
    "unhashable": (
        "signature",
        """
        class P(NodePlugin):
            name = "P"

            def filter(self, pod, node):
                return SUCCESS

            def sign(self, pod):
                return []
        """,
        'plugin "P" failed at sign: TypeError',
    ),
}


@pytest.mark.parametrize("module", sorted(BROKEN))
def test_each_error_of_a_plugin_is_found_by_its_check(run, here, module):
    check, text, message = BROKEN[module]
    plugin_file(here, module, text)

    code, found = checks(run, f"{module}:P")

    assert code == 1
    assert found[check][0] == "failed"
    assert message in found[check][1]


def test_differing_refusals_of_a_plugin_are_reported(run, here):
    plugin_file(
        here,
        "refuser",
        """
        class P(NodePlugin):
            name = "P"

            def filter(self, pod, node):
                return unschedulable("no") if pod.facts.priority else SUCCESS

            def sign(self, pod):
                return ()
        """,
    )

    code, found = checks(run, "refuser:P")

    assert code == 1
    assert "filter: " in found["signature"][1]


def test_results_of_pre_filter_are_compared_too(run, here):
    plugin_file(
        here,
        "early",
        """
        from roadstead.framework.plugin import FilterPlugin, PreFilterPlugin, PreFilterResult
        from roadstead.framework.plugin import ALL_PASS

        class P(PreFilterPlugin, FilterPlugin):
            name = "P"
            reads = Reads.NODE

            def pre_filter(self, state, pod, table):
                late = pod.facts.priority == 1000
                return PreFilterResult(unschedulable("too late") if late else SUCCESS)

            def filter(self, state, pod, table):
                return ALL_PASS

            def sign(self, pod):
                return ()
        """,
    )

    code, found = checks(run, "early:P")

    assert code == 1
    assert "too late" in found["signature"][1]


def test_failed_checks_are_counted_in_the_table(run, here):
    plugin_file(here, "boundless_too", BROKEN["boundless"][1])

    done = run("plugin", "test", "boundless_too:P", "--seeds", 1)

    assert done.exit_code == 1
    assert "checks failed" in done.output


def test_a_plugin_that_can_not_sign_gets_a_warning(run, here):
    plugin_file(
        here,
        "unsigned",
        """
        class P(NodePlugin):
            name = "P"

            def filter(self, pod, node):
                return SUCCESS
        """,
    )

    code, found = checks(run, "unsigned:P")

    assert code == 0
    assert found["signs"][0] == "warning"
    assert "slow" in found["signs"][1]


def test_a_plugin_without_filter_and_score_is_tested_in_a_run_only(run, here):
    plugin_file(
        here,
        "sorter",
        """
        class P(QueueSortPlugin):
            name = "P"

            def sort_key(self, pod, queued_s):
                return (pod.priority, queued_s)
        """,
    )

    code, found = checks(run, "sorter:P")

    assert code == 0
    assert list(found) == ["hooks", "workers"]
    assert found["hooks"][0] == "ok"
    assert found["hooks"][1].startswith("calls: QueueSort ")


@pytest.mark.parametrize(
    ("args", "message"),
    [("{", "--args: "), ('{"maxPods": 0}', "args.maxPods: 0: must be at least 1")],
)
def test_wrong_arguments_are_reported(run, here, args, message):
    run("plugin", "new", "Given")

    done = run("plugin", "test", "given:Given", "--args", args)

    assert done.exit_code == 2
    assert message in done.output


def listed(run, *options):
    """Return name → listed fields of a plugin."""
    done = run("plugin", "list", *options, "--format", "json")
    assert done.exit_code == 0
    return {each["name"]: each for each in json.loads(done.stdout)["plugins"]}


def test_all_plugins_are_listed_with_their_extension_points(run, here, monkeypatch):
    run("plugin", "new", "Listed")
    run("plugin", "new", "Offered")
    offered = {"Offered": "offered:Offered", "Gone": "no_such_module:Gone"}
    monkeypatch.setattr(plugin_list, "installed_plugins", lambda: offered)
    monkeypatch.setattr(sys, "path", [*sys.path, str(here)])

    found = listed(run, "--plugin", "listed:Listed")
    shown = run("plugin", "list", "--plugin", "listed:Listed")

    in_tree = IN_TREE_POINTS.keys() | OPTIONAL_POINTS.keys()
    assert found.keys() == in_tree | {"Listed", "Offered"}
    assert found["Coscheduling"]["enabled"] == found["Offered"]["enabled"] == []
    assert found["Offered"]["file"] == "offered.py"
    points = ["preFilter", "filter", "preScore", "score"]
    assert found["NodeResourcesFit"]["points"] == points
    enabled = {"profile": "default-scheduler", "points": points, "weight": 1}
    assert found["NodeResourcesFit"]["enabled"] == [enabled]
    assert found["Listed"] == {
        "name": "Listed",
        "origin": "listed:Listed",
        "file": "listed.py",
        "points": ["score"],
        "enabled": [enabled | {"points": ["score"]}],
    }
    assert "Listed" in shown.stdout
    assert "Left out: plugin: no_such_module:Gone cannot be loaded" in shown.stderr


TWO_PROFILES = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: one
  plugins:
    score:
      enabled:
      - name: Weighed
        weight: 4
- schedulerName: two
  plugins:
    score:
      disabled:
      - name: NodeResourcesFit
"""


def test_plugins_are_listed_with_the_profiles_and_weights_of_a_configuration(run, here):
    run("plugin", "new", "Weighed")
    (here / "two.yaml").write_text(TWO_PROFILES)

    found = listed(run, "--plugin", "weighed.py", "--config", "two.yaml")
    shown = run("plugin", "list", "--plugin", "weighed.py", "--config", "two.yaml").stdout

    assert found["Weighed"]["enabled"] == [{"profile": "one", "points": ["score"], "weight": 4}]
    fit = found["NodeResourcesFit"]["enabled"]
    assert [(each["profile"], each["weight"]) for each in fit] == [("one", 1), ("two", None)]
    assert "two (preFilter, filter, preScore)" in " ".join(shown.split())


def test_a_plugin_that_the_configuration_does_not_name_is_listed_as_not_enabled(run, here):
    run("plugin", "new", "Idle")

    assert listed(run, "--plugin", "idle:Idle", "--preset", "binpack")["Idle"]["enabled"] == []


def test_a_file_selects_the_plugins_that_it_defines(run, here):
    plugin_file(
        here,
        "several",
        """
        class One(NodePlugin):
            name = "One"

            def score(self, pod, node):
                return 1

        class Two(One):
            name = "Two"
        """,
    )
    (here / "none.py").write_text("import math\n")
    (here / "sub").mkdir()

    assert choose_plugins(["several.py"]).paths == ("several:One", "several:Two")
    assert choose_plugins(["several.py:Two"]).paths == ("several:Two",)
    for given, message in (
        ("none.py", "defines no plugin class"),
        ("sub/several.py", "is not in the working directory"),
        ("gone.py", "No module named 'gone'"),
    ):
        with pytest.raises(InputError, match=message):
            choose_plugins([given])
    refused = run("plugin", "test", "several.py")
    assert refused.exit_code == 2
    assert "defines One, Two: name one, as FILE.py:CLASS" in refused.stderr


CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    score:
      enabled:
      - name: Named
        weight: 4
  pluginConfig:
  - name: Named
    args:
      maxPods: 7
"""


def test_a_configuration_names_a_user_plugin_like_any_other(run, here):
    run("plugin", "new", "Named")
    (here / "mine.yaml").write_text(CONFIG)

    done = run("config", "--config", "mine.yaml", "--plugin", "named:Named", "--effective")

    assert done.exit_code == 0
    assert "Named (weight 4)" in done.output


def test_without_a_configuration_a_plugin_is_added_to_the_default_ones(run, here, cluster, pods):
    run("plugin", "new", "Joined")

    effective = run("config", "--plugin", "joined:Joined", "--effective")
    done = run(
        "explain", "small", "--cluster", cluster, "--pods", pods, "--plugin", "joined:Joined"
    )

    assert "Joined (weight 1)" in effective.output
    assert "PodTopologySpread (weight 2)" in effective.output
    assert done.exit_code == 0
    assert "Joined" in done.output


def test_the_plan_of_a_run_contains_the_plugin(run, launcher, here, cluster, pods):
    run("plugin", "new", "Planned")
    (here / "mine.yaml").write_text(CONFIG.replace("Named", "Planned"))

    done = run(
        *("schedule", "--cluster", cluster, "--pods", pods, "--config", "mine.yaml"),
        *("--plugin", "planned:Planned", "--output", "out"),
    )

    assert done.exit_code == 0
    assert launcher.plan.plugins == ("planned:Planned",)
    assert launcher.plan.plugin_dir == str(here)
    assert "Planned" in (here / "out" / "run.json").read_text()


def test_a_plugin_in_no_configuration_is_reported_as_unused(run, here, cluster, pods):
    run("plugin", "new", "Idle")

    done = run(
        *("schedule", "--cluster", cluster, "--pods", pods, "--preset", "binpack"),
        *("--plugin", "idle:Idle"),
    )

    assert done.exit_code == 0
    assert "Plugin Idle is not used: preset binpack does not name it." in done.output


def test_wrong_arguments_end_a_run_before_it_begins(run, here, cluster, pods):
    run("plugin", "new", "Strict")
    (here / "mine.yaml").write_text(CONFIG.replace("Named", "Strict").replace("7", "many"))

    done = run(
        *("schedule", "--cluster", cluster, "--pods", pods, "--config", "mine.yaml"),
        *("--plugin", "strict:Strict"),
    )

    assert done.exit_code == 2
    assert 'mine.yaml: profiles[0].pluginConfig[0].args.maxPods: "many"' in done.output


def test_an_installed_plugin_is_imported_when_a_configuration_names_it(here, run, monkeypatch):
    run("plugin", "new", "Named")
    offered = {"Named": "named:Named", "Other": "no_such_module:Other"}
    monkeypatch.setattr(plugin_choice, "installed_plugins", lambda: offered)
    monkeypatch.setattr(sys, "path", [*sys.path, str(here)])

    chosen = choose_plugins([], CONFIG)

    assert chosen.paths == ("named:Named",)
    assert chosen.directory == ""
    assert choose_plugins([], "kind: Any").types == {}


def test_an_entry_point_with_another_name_than_its_plugin_is_refused(here, run, monkeypatch):
    run("plugin", "new", "Named")
    monkeypatch.setattr(plugin_choice, "installed_plugins", lambda: {"Alias": "named:Named"})
    monkeypatch.setattr(sys, "path", [*sys.path, str(here)])

    with pytest.raises(InputError, match='must have the name of its entry point, "Alias"'):
        choose_plugins([], "name: Alias")


def test_the_name_of_an_in_tree_plugin_is_refused(here):
    plugin_file(
        here,
        "taken",
        """
        class P(NodePlugin):
            name = "NodeName"

            def score(self, pod, node):
                return 1
        """,
    )

    with pytest.raises(InputError, match='"NodeName" is the name of an in-tree plugin'):
        choose_plugins(["taken:P"])


def test_a_users_queue_sort_replaces_the_default_one(here):
    plugin_file(
        here,
        "sorts",
        """
        class P(QueueSortPlugin):
            name = "P"

            def sort_key(self, pod, queued_s):
                return (queued_s,)
        """,
    )
    chosen = choose_plugins(["sorts:P"])

    loaded = plugin_choice.load_with(chosen, chosen.as_config(), "x")

    assert [ref.name for ref in loaded.config.profiles[0].at("queueSort")] == ["P"]
    assert choose_plugins([]).as_config() == ""


def test_a_plugin_file_without_a_class_is_reported_with_an_example(run):
    result = run("plugin", "test", "few")

    assert result.exit_code == 2
    assert (
        'plugin: "few" must be MODULE:CLASS, or FILE.py for all plugins of a file' in result.stderr
    )
