"""A failing user plugin fails the attempts of its own pods; other pods and the run continue."""

from dataclasses import replace
from pathlib import Path

import pytest

from roadstead.actors.names import BINDER, QUEUE
from roadstead.actors.runs.launch import ActorLauncher
from roadstead.actors.supervisor.plugin_processes import last_call_of, plugins_watched
from roadstead.config.settings import ActorDeadlines, Settings
from roadstead.framework.plugin_calls import PluginCalls
from roadstead.plugin_watch import POD_KEY_FINDERS, Mark
from roadstead.run import RunInputs, RunPlan
from tests.actors.world import pods_of, run_virtually
from tests.builders import node, pod
from tests.faulty_plugins import config_with, faulty

SCORE = 'running Score plugins: plugin "{}" failed with: '
NORMALIZE = 'running Normalize on Score plugins: plugin "{}" failed with: '
FILTER = 'running "{}" filter plugin: '
RANGE = (
    'applying score defaultWeights on Score plugins: plugin "{}" returns an invalid score '
    "{}, it should in the range of [0, 100] after normalizing"
)
SILENT = "RuntimeError: the oracle is silent"

FOR_SOME = {
    "RaisesAtPreEnqueueForSome": 'running PreEnqueue plugin "{}": ' + SILENT,
    "RaisesAtPreFilterForSome": 'running PreFilter plugin "{}": ' + SILENT,
    "RaisesAtFilterForSome": FILTER + SILENT,
    "FailsToCountForSome": 'running PreFilter plugin "{}": ' + SILENT,
    "FailsToWeighForSome": 'running PreScore plugin "{}": ' + SILENT,
    "RaisesAtPreScoreForSome": 'running PreScore plugin "{}": ' + SILENT,
    "RaisesAtScoreForSome": SCORE + SILENT,
    "RaisesAtNormalizeForSome": NORMALIZE + SILENT,
    "RaisesAtReserveForSome": 'running Reserve plugin "{}": ' + SILENT,
    "RaisesAtPermitForSome": 'running Permit plugin "{}": ' + SILENT,
    "RaisesAtPreBindForSome": 'running PreBind plugin "{}": ' + SILENT,
    "ExitsAtScoreForSome": SCORE + "SystemExit: 0",
    "ScoresTooHighForSome": RANGE.format("{}", 500),
    "ScoresTooHighByLabelsForSome": RANGE.format("{}", 500),
    "NormalizesTooLowForSome": RANGE.format("{}", -7),
    "ScoresNaNForSome": SCORE + "returned NaN, want int64[",
    "ScoresFractionsForSome": SCORE + "returned float64[",
    "ScoresTooFewForSome": SCORE + "returned int64[",
    "ScoresNoneForSome": SCORE + "returned None, want int64[",
    "FiltersNoneForSome": FILTER + "returned None, want a FilterResult",
    "FiltersUnknownCodesForSome": FILTER + "returned code 3, want 0..0",
    "NodeScoresNoneForSome": SCORE + "returned None for node n",
    "NodeFiltersNoneForSome": FILTER + "returned None for node n",
}
"""Plugin → start of the message of a pod for which it fails."""

PATHS = {"holds the nodes": {}, "workers": {"workers": 3}}
ROOT = str(Path(__file__).parents[2])
SOUND, FAILING = ("a0", "a1", "a2"), ("b0", "b1")


def fleet():
    """Return six nodes in three zones; pods of 200m, and pods of 100m with failing plugins."""
    labels = [{"topology.kubernetes.io/zone": f"z{i % 3}"} for i in range(6)]
    nodes = tuple(node(f"n{i}", labels=labels[i]) for i in range(6))
    pods = pods_of(*SOUND, facts=pod(cpu=200)) + pods_of(*FAILING, facts=pod(cpu=100))
    return RunInputs(nodes, (), pods)


def plan_of(path, *plugins, **settings):
    given = Settings(runtime="inline", batch=16, **PATHS[path], **settings)
    return RunPlan(given, config_with(*plugins), "mine.yaml", plugins=faulty(*plugins))


def run(path, *plugins):
    return run_virtually(fleet(), plan_of(path, *plugins))


def placed(outcome):
    return sorted(each.pod.removeprefix("default/") for each in outcome.placements)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("plugin", FOR_SOME)
def test_pods_for_which_a_plugin_fails_are_pending_with_its_name_and_others_placed(plugin, path):
    outcome = run(path, plugin)

    assert placed(outcome) == [*SOUND]
    assert sorted(each.pod for each in outcome.pending) == [f"default/{name}" for name in FAILING]
    for each in outcome.pending:
        assert each.message.startswith(FOR_SOME[plugin].format(plugin))


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "plugin",
    [
        "RaisesAtQueueSort",
        "RaisesAtPostBind",
        "RaisesInHints",
        "RaisesInAdvice",
        "RaisesAtPostFilter",
        "RaisesAtFirst",
    ],
)
def test_all_pods_are_placed_if_failures_are_ignored_or_a_retry_succeeds(plugin, path):
    assert placed(run(path, plugin)) == sorted([*SOUND, *FAILING])


@pytest.mark.parametrize("path", PATHS)
def test_pods_for_which_a_plugin_never_returns_are_pending_and_the_others_are_placed(path):
    plugin = "LoopsAtScoreForSome"
    plan = plan_of(path, plugin, deadlines=ActorDeadlines(plugin_s=0.5))
    with plugins_watched(plan) as watched:
        outcome = run_virtually(fleet(), watched)

    assert POD_KEY_FINDERS == {}, "the actors of an ended run are kept no longer"
    assert placed(outcome) == [*SOUND]
    for each in outcome.pending:
        assert "did not return within 0.5 s" in each.message


@pytest.mark.ray
def test_on_ray_a_process_that_a_plugin_ends_is_replaced_and_its_pods_are_pending():
    plugin = "CrashesAtScoreForSome"
    settings = Settings(runtime="ray", **PATHS["holds the nodes"])
    plan = RunPlan(settings, config_with(plugin), "mine.yaml", plugins=faulty(plugin))

    outcome = ActorLauncher().run(fleet(), replace(plan, plugin_dir=ROOT), lambda progress: None)

    assert placed(outcome) == [*SOUND]
    for each in outcome.pending:
        assert each.message.startswith(SCORE.format(plugin) + "is not called for such pods any")


def test_the_end_of_a_process_is_reported_with_the_plugin_that_it_was_calling(tmp_path):
    plan = replace(plan_of("workers", "RaisesAtQueueSort"), marks=str(tmp_path))
    calls = PluginCalls()
    Mark(tmp_path / QUEUE).begin(calls, QUEUE)
    calls.enter("RaisesAtQueueSort", "QueueSort", (pod(cpu=100), 0.0))

    message = ' It was calling plugin "RaisesAtQueueSort" at QueueSort.'
    assert last_call_of(BINDER, plan) == message
    assert last_call_of("worker-0", plan) == ""
    assert last_call_of(BINDER, replace(plan, marks="")) == ""
