import pytest

from roadstead.bench.reading import read_cases
from roadstead.bench.unroll import Params, unroll
from roadstead.protocol.errors import InputError
from tests.bench.cases import NODES, PODS, case, write_cases


def ops_of(folder, *ops, **params):
    (found,) = read_cases(write_cases(folder, case(*ops, PODS, params=params)))
    workload = found.spec.workloads[0]
    return unroll(found, Params(found, workload.name, dict(workload.params)))[: len(ops)]


def refusal(folder, *ops, **params):
    with pytest.raises(InputError) as refused:
        ops_of(folder, *ops, **params)
    return str(refused.value)


def test_a_count_is_given_by_the_op_or_by_a_parameter_that_overrides_it(tmp_path):
    plain, overridden = {"opcode": "createNodes", "count": 7}, {**NODES, "count": 7}

    ops = ops_of(tmp_path, plain, overridden, nodes=9)

    assert [op.count for op in ops] == [7, 9]


def test_integers_may_be_written_as_floats(tmp_path):
    assert ops_of(tmp_path, NODES, nodes=9.0)[0].count == 9


def test_pod_sets_are_expanded_by_namespace(tmp_path):
    pods = {"opcode": "createPods", "countParam": "$each"}
    sets = {
        "opcode": "createPodSets",
        "countParam": "$sets",
        "namespacePrefix": "ns",
        "createPodsOp": pods,
    }
    (found,) = read_cases(write_cases(tmp_path, case(sets, PODS, params={"each": 4, "sets": 2})))

    ops = unroll(found, Params(found, "small", {"each": 4, "sets": 2}))

    assert [(op.namespace, op.count) for op in ops] == [("ns-0", 4), ("ns-1", 4), (None, 2)]


def test_a_count_may_be_multiplied(tmp_path):
    op = {"opcode": "createPods", "countParam": "$groups", "countMultiplierParam": "$each"}

    assert ops_of(tmp_path, op, groups=3, each=5)[0].count == 15


def test_a_product_of_counts_has_the_maximum_of_a_count(tmp_path):
    op = {"opcode": "createPods", "countParam": "$groups", "countMultiplierParam": "$each"}

    message = refusal(tmp_path, op, groups=20_000_000, each=2)

    assert "params.each: 2 times a count of 20000000 must not exceed 20000000" in message


def test_create_any_creates_one_object_by_default(tmp_path):
    one = {"opcode": "createAny", "templatePath": "x.yaml"}
    some = {**one, "countParam": "$many"}

    assert [op.count for op in ops_of(tmp_path, one, some, many=4)] == [1, 4]


def test_template_parameters_are_filled_in(tmp_path):
    op = {**NODES, "templateParams": {"zone": "$zone", "fixed": "a", "number": 3}}

    (found,) = ops_of(tmp_path, op, nodes=1, zone="z1")

    assert found.template_params == {"zone": "z1", "fixed": "a", "number": 3}


@pytest.mark.parametrize(
    ("text", "seconds"), [("5s", "5.0"), ("1m30s", "90.0"), ("250ms", "0.25"), ("1.5h", "5400.0")]
)
def test_durations_are_read_as_go_writes_them(tmp_path, text, seconds):
    plain, overridden = (
        {"opcode": "sleep", "duration": text},
        {"opcode": "sleep", "durationParam": "$d"},
    )

    assert [op.duration for op in ops_of(tmp_path, plain, overridden, d=text)] == [seconds, seconds]


@pytest.mark.parametrize("text", ["", "5", "s", "5 s", "1m 5s"])
def test_an_invalid_duration_is_refused(tmp_path, text):
    assert "is not a duration" in refusal(tmp_path, {"opcode": "sleep", "duration": text})


def test_missing_unused_or_non_numeric_parameters_are_refused_by_name(tmp_path):
    assert 'workload "small": params.nodes: is not among' in refusal(tmp_path, NODES)
    assert "params.nodse: is used by no op" in refusal(tmp_path, NODES, nodes=1, nodse=2)
    for wrong in ("many", 1.5, True, -1, 10**9):
        assert "params.nodes:" in refusal(tmp_path, NODES, nodes=wrong)


def test_a_steady_state_may_be_a_parameter_and_its_duration_is_otherwise_ignored(
    tmp_path,
):
    op = {
        "opcode": "createPods",
        "countParam": "$many",
        "steadyStateParam": "$steady",
        "durationParam": "$long",
    }

    (off,) = ops_of(tmp_path, op, many=1, steady=False, long="10s")
    (on,) = ops_of(tmp_path, op, many=1, steady=True, long="10s")

    assert (off.steady_state, on.steady_state) == (False, True)
    assert "is not a duration" in refusal(tmp_path, op, many=1, steady=False, long="10")
