"""The what-if questions of the Python API return what the commands print."""

import json

import pytest
from click.testing import CliRunner

import roadstead
from roadstead.actors.entry import open_launcher
from roadstead.cli.main import build_cli
from tests.tables import rows_of

SOURCE = ("--cluster", "nodes.json", "--pods", "app", "--seed", "1")
CATALOG = """
apiVersion: roadstead.dev/v1
kind: NodeCatalog
shapes:
- {name: small, node: {status: {allocatable: {cpu: "2", memory: 4Gi, pods: "110"}}}}
"""


def command(*args: str) -> dict[str, object]:
    arguments = [*args, *SOURCE, "--format", "json"]
    done = CliRunner().invoke(build_cli(open_launcher), arguments, catch_exceptions=False)
    return json.loads(done.stdout)


@pytest.fixture
def catalog(manifests):
    (manifests / "shapes.yaml").write_text(CATALOG)
    return "shapes.yaml"


def test_the_documents_are_the_json_of_the_commands(cluster, catalog):
    fits = cluster.fit("web", total=True, seed=1)
    assert fits.document() == command("fit", "web", "--total")
    assert cluster.grow(catalog, seed=1).document() == command("grow", "--catalog", catalog)
    assert cluster.shrink(seed=1).document() == command("grow", "--shrink")
    drained = cluster.drain("n1", force=True, seed=1)
    assert drained.document() == command("drain", "n1", "--force")


def test_results_are_typed(cluster, catalog):
    fits = cluster.fit("web", max_changes=1)
    assert isinstance(fits, roadstead.FitResult)
    assert (fits.replicas, fits.placed, fits.pending) == (0, 4, 1)
    assert fits.changes[0].kinds == ("preempt",) or fits.changes[0].share > 0
    grown = cluster.grow(catalog)
    assert isinstance(grown, roadstead.GrowResult)
    assert (grown.count, grown.nodes) == (1, ("small-0001",))
    assert isinstance(cluster.shrink(), roadstead.ShrinkResult)
    assert isinstance(cluster.drain("a"), roadstead.DrainResult)


def test_tables_have_the_rows_of_the_results(cluster, catalog):
    fits = cluster.fit("web", total=True)
    assert [(row["node"], row["replicas"]) for row in rows_of(fits.to_arrow())] == [
        (each.node, each.replicas) for each in fits.nodes
    ]
    assert rows_of(cluster.grow(catalog).to_arrow()) == [
        {"shape": "small", "count": 1, "price_per_hour": None, "pods": 1}
    ]
    assert rows_of(cluster.shrink().to_arrow()) == []
    drained = cluster.drain("n1", force=True)
    assert [row["pod"] for row in rows_of(drained.to_arrow())] == [
        each.pod for each in drained.pods
    ]


def test_nothing_is_printed_and_progress_is_passed_to_a_callback(cluster, capfd):
    phases = []

    cluster.drain("n1", progress=lambda each: phases.append(each.phase))

    assert capfd.readouterr() == ("", "")
    assert phases[0] == "placing the given pods"


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda c: c.fit(), "POD_OR_WORKLOAD: tuple of 0 must name 1 to 100"),
        (lambda c: c.fit(*["web"] * 101), "tuple of 101 must name 1 to 100"),
        (lambda c: c.fit("nope"), 'POD: "nope" is no pod or workload'),
        (lambda c: c.drain(), "NODE: no node is chosen"),
        (lambda c: c.drain("n9"), 'NODE: "n9" is no node or zone'),
        (lambda c: c.shrink(zone="z"), '--zone: "z" is no zone'),
        (lambda c: c.grow("none.yaml"), "none.yaml: cannot be read"),
        (lambda c: c.drain("n1", preset="none"), "preset"),
    ],
)
def test_a_wrong_argument_is_an_error(cluster, call, text):
    with pytest.raises(roadstead.InputError) as error:
        call(cluster)

    assert text in str(error.value)
