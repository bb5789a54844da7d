"""Sampling and extenders in whole runs, on both runtimes, with real servers."""

import base64

import pytest
import trustme

from roadstead.actors.runs import client
from roadstead.actors.runs.launch import ActorLauncher
from roadstead.config.settings import Settings
from roadstead.cycle.plain_cycle import PlainCycle
from roadstead.framework.tie_break import TieBreak
from roadstead.nodes.table import NodeTable
from roadstead.run import RunPlan, build_node_search, build_profiles
from tests.actors import fleets
from tests.actors.world import identity, in_cycle, inputs_of, placed, plan_of, run_inline
from tests.builders import node, pod
from tests.extenders.servers import Server, tls_server_context
from tests.inside import node_search_of

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
SAMPLED = HEAD + "percentageOfNodesToScore: 1\n"
ZONES = ["a", "b", "a", "c", "b", "a", "a", "c", "b", "c", "a", "b"]


@pytest.fixture(autouse=True)
def _quick_looks(monkeypatch):
    """Let the client poll often, so that small runs end soon."""
    monkeypatch.setattr(client, "POLL_S", 0.002)


@pytest.fixture
def few_are_enough(monkeypatch):
    """Set samples of three nodes, so that small fleets are sampled."""
    monkeypatch.setattr("roadstead.framework.sampling.MIN_FEASIBLE_NODES", 3)


def fleet(pods=9):
    nodes = [fleets.host(number, zone) for number, zone in enumerate(ZONES)]
    return inputs_of(nodes, [(identity(f"p{n}"), pod(cpu=100 + n % 2)) for n in range(pods)])


def plan(config, **settings):
    return plan_of(config=config, tie_break="first", **settings)


def plainly(inputs, plan):
    """Return pod → node, one pod after another on one table."""
    table = NodeTable()
    for facts in inputs.nodes:
        table.add_node(facts)
    profiles = build_profiles(plan, table.classes)
    tie_break = TieBreak(plan.settings.tie_break, plan.settings.seed)
    cycle = PlainCycle(table, profiles, tie_break, node_search=build_node_search(plan))
    nodes = {}
    for who, facts in inputs.pending:
        asked = in_cycle(who, facts, table.classes, profiles["default-scheduler"])
        nodes[who.key] = cycle.decide(asked).node_name
    return nodes


@pytest.mark.parametrize("batch", [1, 4, 2048])
def test_a_sampled_run_decides_like_one_table(few_are_enough, batch):
    how = plan(SAMPLED, batch=batch)

    outcome, actors = run_inline(fleet(), how)

    assert placed(outcome) == plainly(fleet(), how)
    assert node_search_of(actors["scheduler-0"]).start > 0, "the search continued from node to node"


def test_without_a_configured_percentage_nothing_is_sampled(few_are_enough):
    silent = plan(HEAD)
    overruled = plan(SAMPLED, score_nodes="all")

    assert build_node_search(silent) is None
    assert build_node_search(overruled) is None
    sampled, _ = run_inline(fleet(), plan(SAMPLED))
    everything, _ = run_inline(fleet(), overruled)
    assert placed(everything) == placed(run_inline(fleet(), silent)[0]) != placed(sampled)


class Odd:
    """An extender that scores nodes of odd number highest and refuses every third."""

    def __init__(self):
        self.bound = {}

    def answer(self, verb, payload):
        if verb == "bind":
            self.bound[payload["PodName"]] = payload["Node"]
            return {}
        nodes = payload["Nodes"]
        if nodes is None:
            names = payload["NodeNames"]
        else:
            names = [node["metadata"]["name"] for node in nodes["items"]]
        if verb == "prioritize":
            return [{"Host": name, "Score": 10 * (int(name[1:]) % 2)} for name in names]
        left = [name for name in names if int(name[1:]) % 3]
        refused = {name: "a third" for name in names if name not in left}
        if nodes is None:
            return {"NodeNames": left, "FailedNodes": refused}
        items = [node for node in nodes["items"] if node["metadata"]["name"] in left]
        return {"Nodes": {"items": items}, "FailedNodes": refused}


def extender_config(port, *, scheme="http", **fields):
    given = {
        "urlPrefix": f"{scheme}://127.0.0.1:{port}/odd",
        "filterVerb": "filter",
        "prioritizeVerb": "prioritize",
        "weight": 5,
        **fields,
    }
    lines = "".join(f"  {key}: {value}\n" for key, value in given.items())
    return f"{HEAD}extenders:\n- " + lines.lstrip()


@pytest.mark.parametrize("cache", ["true", "false"])
def test_a_run_with_an_extender_decides_like_one_table(cache):
    with Server(Odd().answer) as server:
        how = plan(extender_config(server.port, nodeCacheCapable=cache), workers=3)

        outcome, _ = run_inline(fleet(), how)

        assert placed(outcome) == plainly(fleet(), how)
    numbers = {int(name[1:]) for name in placed(outcome).values()}
    assert all(number % 2 and number % 3 for number in numbers)


@pytest.mark.ray
def test_a_run_with_an_extender_on_ray_decides_like_an_inline_run(tmp_path):
    with Server(Odd().answer) as server:
        config = extender_config(server.port, nodeCacheCapable="true")
        settings = Settings(runtime="ray", workers=2, tie_break="first")
        how = RunPlan(settings, config, "scheduler.yaml", log_dir=str(tmp_path))

        outcome = ActorLauncher().run(fleet(), how, lambda progress: None)
        inline, _ = run_inline(fleet(), plan(config, workers=2))

    assert placed(outcome) == placed(inline)


def test_an_extender_over_tls_binds_the_placed_pods():
    authority = trustme.CA()
    roots = base64.b64encode(authority.cert_pem.bytes()).decode()
    context = tls_server_context(authority.issue_cert("127.0.0.1"))
    odd = Odd()
    with Server(odd.answer, context) as server:
        config = extender_config(
            server.port,
            scheme="https",
            bindVerb="bind",
            nodeCacheCapable="true",
            tlsConfig=f"{{caData: {roots}}}",
        )
        outcome, _ = run_inline(fleet(4), plan(config))

    assert {f"default/{name}": node for name, node in odd.bound.items()} == placed(outcome)
    assert len(odd.bound) == 4


def test_a_pod_that_an_extender_did_not_bind_is_tried_again():
    odd, refused = Odd(), []

    def answer(verb, payload):
        if verb == "bind" and payload["PodName"] == "p0" and not refused:
            refused.append(payload["Node"])
            return {"Error": "come again"}
        return odd.answer(verb, payload)

    with Server(answer) as server:
        config = extender_config(server.port, bindVerb="bind", nodeCacheCapable="true")
        outcome, actors = run_inline(fleet(2), plan(config))

    assert len(refused) == 1
    assert set(placed(outcome)) == {"default/p0", "default/p1"}
    assert odd.bound == {each.pod.partition("/")[2]: each.node for each in outcome.placements}
    actors["scheduler-0"].core.validate()


def test_an_explanation_includes_the_extender():
    with Server(Odd().answer) as server:
        how = plan(extender_config(server.port, nodeCacheCapable="true"), workers=2)
        asked = (identity("asked"), pod(cpu=100))

        explanation = ActorLauncher().explain(fleet(2), how, asked, lambda progress: None)

    entry = explanation.as_recorded()
    assert entry["filterStatuses"] == [
        {"code": "Unschedulable", "plugin": "Extender", "reasons": ["a third"]}
    ]
    assert entry["scores"][-1]["plugin"] == "Extender"
    assert all(int(name[1:]) % 3 for name in entry["feasible"])


def test_an_extender_chooses_the_node_of_a_preempting_pod():
    asked = []

    def answer(verb, payload):
        asked.append((verb, sorted(payload["NodeNameToMetaVictims"])))
        return {"NodeNameToMetaVictims": {"n2": payload["NodeNameToMetaVictims"]["n2"]}}

    nodes = [node(f"n{number}", cpu=1000) for number in range(3)]
    running = [(identity(f"low{n}"), pod(cpu=900), f"n{n}") for n in range(3)]
    inputs = inputs_of(nodes, [(identity("high"), pod(cpu=900, priority=10))], running)
    with Server(answer) as server:
        lines = "  preemptVerb: preempt\n  nodeCacheCapable: true\n"
        config = f"{HEAD}extenders:\n- urlPrefix: http://127.0.0.1:{server.port}\n{lines}"

        outcome, _ = run_inline(inputs, plan(config, workers=2))

    assert asked == [("preempt", ["n0", "n1", "n2"])]
    assert placed(outcome)["default/high"] == "n2"
