"""The manifests of config/deploy/ are valid for KubeRay, for Ray's launcher and for Roadstead.

Neither Ray nor KubeRay runs here: fields are compared with their schemas.
"""

import json
import re
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import jsonschema
import pytest
import yaml

import roadstead
from roadstead.config.reader import read_document
from roadstead.manifests.unknown_fields import unknown_fields
from roadstead.version import __version__

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "config" / "deploy"
MANIFESTS = ("raycluster.yaml", "rayjob.yaml")
FIELDS = yaml.safe_load((Path(__file__).parent / "kuberay_fields.yaml").read_text())["types"]
RAY = Path(find_spec("ray").submodule_search_locations[0])
"""Folder of the installed Ray, which is not imported."""

PLAIN = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "quantity": (str, int),
}


def read(name):
    return read_document((DEPLOY / name).read_text(), source=name)


def locked_ray():
    return re.search(r"^ray==(\S+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE)[1]


def problems(type_, value, at):
    """Yield the errors of a value against the list of KubeRay's fields."""
    type_ = type_.removesuffix("!")
    if type_ == "any":
        return
    if type_ == "PodTemplate":
        yield from (str(error) for error in unknown_fields("Pod", value))
        yield from (f"{at}.{key}" for key in value.keys() - {"metadata", "spec"})
    elif type_.startswith("["):
        for index, each in enumerate(value):
            yield from problems(type_[1:-1], each, f"{at}[{index}]")
    elif type_.startswith("{"):
        for key, each in value.items():
            yield from problems(type_[1:-1], each, f"{at}.{key}")
    elif type_ in FIELDS:
        known = FIELDS[type_]
        yield from (f"{at}.{key} is unknown" for key in value.keys() - known.keys())
        required = {key for key, each in known.items() if each.endswith("!")}
        yield from (f"{at}.{key} is missing" for key in required - value.keys())
        for key in value.keys() & known.keys():
            yield from problems(known[key], value[key], f"{at}.{key}")
    elif not isinstance(value, PLAIN[type_]) or (isinstance(value, bool) and type_ != "boolean"):
        yield f"{at} is no {type_}: {value!r}"


def cluster_spec(name):
    spec = read(name)["spec"]
    return spec.get("rayClusterSpec", spec)


def templates(name):
    """Yield name, template and number of the pods of each group, the head first."""
    spec = cluster_spec(name)
    yield "head", spec["headGroupSpec"]["template"], 1
    for group in spec["workerGroupSpecs"]:
        yield group["groupName"], group["template"], group["replicas"]


def pods(name):
    """Return the pods that KubeRay creates for a manifest, without its own additions."""
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {**template.get("metadata", {}), "name": f"{group}-{number}"},
            "spec": template["spec"],
        }
        for group, template, count in templates(name)
        for number in range(count)
    ]


def nodes(**zones):
    """Return a node of 8 CPUs for each name, in the zone that is its value."""
    return [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": zone}},
            "status": {"allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"}},
        }
        for name, zone in zones.items()
    ]


def write(path, documents):
    path.write_text(yaml.safe_dump_all(documents))
    return str(path)


@pytest.mark.parametrize("name", MANIFESTS)
def test_kuberay_has_every_field_with_its_type(name):
    document = read(name)

    assert document["apiVersion"] == "ray.io/v1"
    assert list(problems(document["kind"], document, document["kind"])) == []


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda spec: spec.update(entrypoints=""), "unknown"),
        (lambda spec: spec.update(backoffLimit=True), "is no integer"),
        (lambda spec: spec["rayClusterSpec"].pop("headGroupSpec"), "is missing"),
        (
            lambda spec: spec["rayClusterSpec"]["headGroupSpec"].update(
                rayStartParams={"num-cpus": 0}
            ),
            "num-cpus is no string",
        ),
        (
            lambda spec: spec["rayClusterSpec"]["headGroupSpec"]["template"]["spec"].update(
                nodeSelectors={}
            ),
            "did you mean nodeSelector",
        ),
    ],
)
def test_the_check_finds_a_wrong_field(change, problem):
    document = read("rayjob.yaml")
    change(document["spec"])

    (found,) = problems("RayJob", document, "RayJob")
    assert problem in found


@pytest.mark.parametrize("name", MANIFESTS)
def test_manifests_name_the_locked_ray_and_this_release(name):
    assert cluster_spec(name)["rayVersion"] == locked_ray()
    images = {pod["spec"]["containers"][0]["image"] for pod in pods(name)}
    assert images == {f"roadstead:{__version__}"}


@pytest.mark.parametrize("name", MANIFESTS)
def test_no_pod_runs_as_root_or_can_gain_privileges(name):
    for group, template, _ in templates(name):
        assert template["spec"]["securityContext"]["runAsNonRoot"] is True, group
        (container,) = template["spec"]["containers"]
        rights = container["securityContext"]
        assert rights["allowPrivilegeEscalation"] is False
        assert rights["capabilities"] == {"drop": ["ALL"]}


@pytest.mark.parametrize("name", MANIFESTS)
def test_processes_of_a_run_are_on_workers_labelled_with_their_zone(name):
    spec = cluster_spec(name)

    assert spec["headGroupSpec"]["rayStartParams"]["num-cpus"] == "0"
    zones = [group["labels"] for group in spec["workerGroupSpecs"]]
    assert zones == [each["template"]["spec"]["nodeSelector"] for each in spec["workerGroupSpecs"]]
    assert len({json.dumps(each) for each in zones}) == 2


def test_the_job_joins_the_cluster_and_deletes_it():
    spec = read("rayjob.yaml")["spec"]

    assert spec["entrypoint"] == "roadstead demo --ray-address auto"
    assert spec["shutdownAfterJobFinishes"] is True
    assert spec["activeDeadlineSeconds"] > 0


@pytest.mark.parametrize("name", MANIFESTS)
def test_roadstead_places_the_pods_of_a_manifest_in_their_zones(name, tmp_path):
    fleet = write(tmp_path / "nodes.yaml", nodes(a="zone-a", b="zone-b"))
    wanted = pods(name)

    cluster = roadstead.load(fleet, write(tmp_path / "pods.yaml", wanted), strict=True)
    result = cluster.schedule(seed=1)

    assert len(wanted) > 2
    assert len(result.placements) == len(wanted)
    node_of = {each.pod.rpartition("/")[2]: each.node for each in result.placements}
    assert (node_of["zone-a-0"], node_of["zone-b-0"]) == ("a", "b")


def test_workers_wait_for_a_node_of_their_zone(tmp_path):
    fleet = write(tmp_path / "nodes.yaml", nodes(a="zone-a", b="zone-a"))
    waiting = write(tmp_path / "pods.yaml", pods("raycluster.yaml"))

    pending = roadstead.load(fleet, waiting).schedule(seed=1).pending

    assert Counter(each.pod for each in pending) == {"default/zone-b-0": 1}
    assert "didn't match Pod's node affinity/selector" in pending[0].message


@pytest.mark.parametrize("name", MANIFESTS)
def test_roadstead_reports_that_pods_of_a_custom_resource_are_missing(name, tmp_path):
    fleet = write(tmp_path / "nodes.yaml", nodes(a="zone-a"))

    cluster = roadstead.load(fleet, str(DEPLOY / name))

    kind = read(name)["kind"]
    (note,) = cluster.notes
    assert note.startswith(f"Left out: {kind}.ray.io default/roadstead")
    assert "its own controller creates its pods" in note


def test_the_launcher_file_has_only_fields_of_ray():
    schema = json.loads((RAY / "autoscaler" / "ray-schema.json").read_text())

    jsonschema.validate(read("cluster-launcher.yaml"), schema)


def test_the_launcher_installs_the_dashboard_of_the_locked_ray():
    commands = read("cluster-launcher.yaml")["setup_commands"]

    (install,) = [command for command in commands if "ray[default]" in command]
    assert f"'ray[default]=={locked_ray()}'" in install
    locked = next(index for index, each in enumerate(commands) if "--require-hashes" in each)
    assert commands.index(install) > locked, "the lock would otherwise replace it"


def test_options_of_ray_start_exist():
    launcher = read("cluster-launcher.yaml")
    commands = launcher["head_start_ray_commands"] + launcher["worker_start_ray_commands"]
    used = {
        option
        for command in commands
        for option in re.findall(r"--[a-z-]+", command.partition("ray start")[2])
    }
    for name in MANIFESTS:
        spec = cluster_spec(name)
        for group in (spec["headGroupSpec"], *spec["workerGroupSpecs"]):
            used |= {f"--{key}" for key in group["rayStartParams"]}

    known = (RAY / "scripts" / "scripts.py").read_text()
    assert {option for option in used if f'"{option}"' not in known} == set()
    assert {"--head", "--labels-file", "--num-cpus"} <= used


def test_the_image_has_the_locked_packages_and_no_root():
    text = (DEPLOY / "Containerfile").read_text()
    instructions = re.sub(r"\\\n", "", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE))

    assert f"ARG RAY_VERSION={locked_ray()}\n" in instructions
    for line in re.findall(r"^RUN .*pip install.*$", instructions, re.MULTILINE):
        assert "--require-hashes" in line or "--no-index" in line
    last_stage = instructions.rpartition("\nFROM ")[2]
    wheel, kernel = last_stage.index("dist/*.whl"), last_stage.index("python -m roadstead.kernel")
    assert wheel < kernel, "the kernel that is compiled is that of the wheel"
    assert re.findall(r"^USER (.*)$", last_stage, re.MULTILINE)[-1] == "1000:100"
    for path in re.findall(r"^COPY (?:--chown=\S+ )?((?!--from)\S.*) \S+$", instructions, re.M):
        assert all((ROOT / each).exists() for each in path.split()), path
