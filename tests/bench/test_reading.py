import pytest
import yaml

from roadstead.bench.reading import read_cases
from roadstead.protocol.errors import InputError
from tests.bench.cases import NODES, PODS, case, write_cases


def refusal(folder, *cases):
    with pytest.raises(InputError) as refused:
        read_cases(write_cases(folder, *cases))
    return str(refused.value).replace(str(folder), "DIR")


def test_a_case_is_read_with_its_ops_workloads_and_templates(tmp_path):
    path = write_cases(tmp_path, case(NODES, PODS, labels=["fast"]), pod="kind: Pod")

    (found,) = read_cases(path)

    assert found.name == "Case"
    assert [op.opcode for op in found.spec.workload_template] == ["createNodes", "createPods"]
    assert [each.params for each in found.spec.workloads] == [{"nodes": 3}]
    assert found.spec.labels == ("fast",)
    assert found.template("pod.yaml").document() == {"kind": "Pod"}
    assert found.template("pod.yaml") is found.template("pod.yaml")


def test_fields_for_upstreams_reports_only_are_ignored(tmp_path):
    more = {"featureGates": {"X": True}, "metricsCollectorConfig": {}, "threshold": 10}

    (found,) = read_cases(write_cases(tmp_path, case(NODES, PODS, **more)))

    assert found.name == "Case"


def test_a_missing_template_is_reported_with_its_path(tmp_path):
    (found,) = read_cases(write_cases(tmp_path, case(NODES, PODS)))

    with pytest.raises(InputError, match=r"missing.yaml: cannot be read"):
        found.template("missing.yaml")


def test_a_file_that_is_not_a_list_of_cases_is_refused(tmp_path):
    path = tmp_path / "cases.yaml"
    for text in ("", "a: 1", "[]\n---\n[]"):
        path.write_text(text)
        with pytest.raises(InputError, match="must hold one list of test cases"):
            read_cases(path)
    path.write_text("[]")
    with pytest.raises(InputError, match="holds no test case"):
        read_cases(path)


def test_the_first_error_is_reported_with_case_field_and_rule(tmp_path):
    wrong = {"opcode": "createNodes", "count": "many"}

    assert refusal(tmp_path, case(wrong, PODS)) == (
        'DIR/cases.yaml: test case "Case": [0].workloadTemplate[0].createNodes.count: '
        '"many" must be an integer'
    )


@pytest.mark.parametrize(
    ("op", "text"),
    [
        ({"opcode": "updateAny"}, "updateAny"),
        ({"opcode": "createNodes", "cuont": 3}, "cuont: 3 unknown field"),
        ({"opcode": "createNodes", "count": -1}, "must be at least 0"),
        ({"opcode": "createNodes", "countParam": "nodes"}, "pattern"),
        ({"opcode": "churn", "mode": "sometimes", "templatePaths": ["a"]}, "must be 'create'"),
        ({"opcode": "churn", "mode": "create", "templatePaths": []}, "templatePaths"),
        ({"opcode": "barrier", "stageRequirement": "Bound"}, "stageRequirement"),
        ({"opcode": "startCollectingMetrics", "namespaces": []}, "namespaces"),
        ({"opcode": "createAny", "templatePath": ""}, "templatePath"),
        ({"opcode": "sleep", "duration": 5}, "must be a text"),
    ],
)
def test_ops_that_differ_from_upstreams_are_refused(tmp_path, op, text):
    message = refusal(tmp_path, case(op, PODS))

    assert "workloadTemplate[0]" in message
    assert text in message


def test_duplicate_names_are_refused(tmp_path):
    assert 'name: "Case" is there twice' in refusal(tmp_path, case(NODES, PODS), case(NODES, PODS))
    twice = case(NODES, PODS)
    twice["workloads"] *= 2
    assert 'test case "Case": name: "small" is there twice' in refusal(tmp_path, twice)


def test_a_case_without_measurements_is_refused(tmp_path):
    unmeasured = {"opcode": "createPods", "count": 2}
    sets = {"opcode": "createPodSets", "namespacePrefix": "ns", "createPodsOp": unmeasured}

    assert "nothing would be measured" in refusal(tmp_path, case(NODES, unmeasured, sets))


@pytest.mark.parametrize(
    "op",
    [
        PODS,
        {"opcode": "createPodSets", "namespacePrefix": "ns", "createPodsOp": PODS},
        {"opcode": "stopCollectingMetrics"},
    ],
)
def test_every_way_to_measure_is_recognized(tmp_path, op):
    assert len(read_cases(write_cases(tmp_path, case(NODES, op)))) == 1


def test_a_wrong_list_without_names_is_refused_too(tmp_path):
    path = tmp_path / "cases.yaml"
    for content in ([3], [{"name": 3}]):
        path.write_text(yaml.safe_dump(content))
        with pytest.raises(InputError, match=r"\[0\]"):
            read_cases(path)


def test_aliases_with_an_excessive_expansion_are_refused(tmp_path):
    path = tmp_path / "cases.yaml"
    lines = ["- &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"- &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    path.write_text("\n".join(lines))

    with pytest.raises(InputError):
        read_cases(path)
