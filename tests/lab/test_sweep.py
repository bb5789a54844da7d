"""Proves sweeps: their parameters, their runs, and the bands over repeats."""

from dataclasses import replace

import pytest

from roadstead.lab import omega, parsync, policies
from roadstead.lab.presets import PRESETS
from roadstead.lab.statistics import Band, band
from roadstead.lab.studies import EXTRA_SLOTS, MODEL_STUDIES, OMEGA, POLICIES, Parameter, Study
from roadstead.lab.sweep import make_sweep, sweep_result
from roadstead.protocol.errors import InputError, RoadsteadError

NUMBER = Parameter("number", 2, "a number", 1, 9)
SHARE = Parameter("share", 0.5, "a share", 0.0, 1.0)
WORD = Parameter("word", "a", "a word", choices=("a", "b"))


def product_of(values, seed):
    return {"product": values["number"] * values["share"] + seed}


STUDY = Study("toy", "a toy", (NUMBER, SHARE, WORD), product_of, ("product",))


def sweep_of(axes, fixed=None, seeds=(0,), study=STUDY):
    return make_sweep(study, axes, fixed or {}, seeds, source="sweep.yaml")


def refusal(*args, **named):
    with pytest.raises(InputError) as refused:
        sweep_of(*args, **named)
    return str(refused.value)


def metrics_of(sweep, count=None):
    """The metrics of the first `count` runs, by their place."""
    return dict(enumerate(sweep.study.run(*run) for run in sweep.runs()[:count]))


@pytest.mark.parametrize(
    ("study", "module", "run", "model"),
    [
        (OMEGA, omega, "simulate", omega.OmegaModel()),
        (EXTRA_SLOTS, parsync, "extra_slots", parsync.GapModel()),
        (POLICIES, policies, "simulate", policies.PolicyModel()),
    ],
)
def test_a_study_and_its_model_have_the_same_defaults(monkeypatch, study, module, run, model):
    monkeypatch.setattr(module, run, lambda made, seed: {"is_same": float(made == model)})

    assert study.run(study.complete({}), 0) == {"is_same": 1.0}


def test_one_repeat_has_no_band():
    assert band([3.0]) == Band(3.0, 3.0, 3.0)


def test_a_band_is_the_student_interval_of_the_mean():
    found = band([1.0, 2.0, 3.0])

    assert found.mean == 2.0
    assert found.high == pytest.approx(2.0 + 4.303 / 3**0.5, rel=1e-6)
    assert found.low == pytest.approx(2.0 - 4.303 / 3**0.5, rel=1e-6)


def test_with_many_repeats_the_band_is_the_normal_interval():
    many = [0.0, 2.0] * 50

    assert band(many).high == pytest.approx(1.0 + 1.96 * 1.00504 / 10, rel=1e-4)


@pytest.mark.parametrize(
    ("parameter", "given", "value"),
    [
        (NUMBER, "7", 7),
        (NUMBER, 7, 7),
        (NUMBER, 7.0, 7),
        (SHARE, "0.25", 0.25),
        (SHARE, 1, 1.0),
        (WORD, "b", "b"),
    ],
)
def test_values_are_read_from_text_and_from_files(parameter, given, value):
    assert parameter.parse(given, "x") == value


def test_a_large_bound_is_printed_in_full():
    assert replace(NUMBER, high=1_000_000).rule == "a whole number from 1 to 1,000,000"


@pytest.mark.parametrize(
    ("parameter", "given"),
    [
        (NUMBER, "7.5"),
        (NUMBER, 0),
        (NUMBER, True),
        (NUMBER, "many"),
        (SHARE, "nan"),
        (SHARE, 1.01),
        (WORD, "c"),
        (WORD, None),
    ],
)
def test_values_out_of_bounds_are_reported_with_the_rule(parameter, given):
    with pytest.raises(InputError, match="must be"):
        parameter.parse(given, "x")


def test_a_refusal_names_source_field_value_and_rule():
    text = refusal({"number": [1, 99]})

    assert text == 'sweep.yaml: number: "99" must be a whole number from 1 to 9'


@pytest.mark.parametrize(
    ("axes", "fixed", "message"),
    [
        ({"colour": [1]}, {}, "is no parameter of toy (want one of number, share, word)"),
        ({"number": []}, {}, "has 0 values"),
        ({"number": [1, 1]}, {}, "has a value twice"),
        ({"number": [1, 2]}, {"number": 1}, "is both swept and fixed"),
        ({}, {"word": "c"}, "must be one of a, b"),
    ],
)
def test_a_parameter_that_can_not_be_swept_is_refused(axes, fixed, message):
    assert message in refusal(axes, fixed)


def test_a_sweep_too_large_or_without_seeds_is_refused():
    shares = [index / 1000 for index in range(1000)]

    assert "is 108,000 runs" in refusal({"share": shares, "number": range(1, 10)}, seeds=range(12))
    assert "seeds" in refusal({}, seeds=())


def test_impossible_combinations_are_refused_and_the_rest_is_run():
    picky = Study(
        "picky", "", (NUMBER, SHARE), product_of, ("product",), lambda values: values["number"] > 2
    )

    assert "no combination" in refusal({"number": [1, 2]}, study=picky)
    assert [each["number"] for each in sweep_of({"number": [1, 3]}, study=picky).points()] == [3]


def test_a_phase_of_load_shorter_than_a_step_of_its_gap_is_refused():
    message = refusal({}, {"phase_s": 1.0, "sync_gap_s": 60.0}, study=POLICIES)

    assert "no combination" in message


def test_every_combination_has_a_run_with_every_seed_and_a_name():
    sweep = sweep_of({"number": [2, 4], "word": ["a", "b"]}, {"share": 0.5}, seeds=(0, 1, 2))

    done = sweep_result(sweep, metrics_of(sweep))

    assert sweep.size == len(done.rows) == len(sweep.runs()) == 12
    assert sweep.name_of(sweep.runs()[0][0]) == "number 2, word a"
    points = done.points()
    assert [point.values for point in points][1] == {"number": 2, "word": "b"}
    assert points[0].bands["product"].mean == 2.0
    assert points[-1].bands["product"].mean == 3.0


def test_rows_are_in_the_order_of_the_plan_not_of_the_results():
    sweep = sweep_of({"number": [1, 2]}, seeds=(0, 1))
    metrics = metrics_of(sweep)

    late_first = {place: metrics[place] for place in (3, 1, 2, 0)}

    assert sweep_result(sweep, late_first) == sweep_result(sweep, metrics)


@pytest.mark.parametrize("ended", [KeyboardInterrupt(), RoadsteadError("no more")])
def test_a_sweep_that_ended_early_keeps_the_finished_combinations(ended):
    sweep = sweep_of({"number": [1, 2, 3, 4]}, seeds=(0, 1))
    metrics = metrics_of(sweep)
    del metrics[2], metrics[7]

    done = sweep_result(sweep, metrics, ended)

    assert done.stopped_by is ended
    assert [point.values for point in done.points()] == [{"number": 1}, {"number": 3}]


def test_a_sweep_that_ended_in_its_first_combination_has_no_result():
    sweep = sweep_of({"number": [1, 2]}, seeds=(0, 1))

    with pytest.raises(KeyboardInterrupt):
        sweep_result(sweep, metrics_of(sweep, 1), KeyboardInterrupt())


def test_a_sweep_without_axes_repeats_one_run():
    sweep = sweep_of({}, seeds=(0, 1))

    assert [point.values for point in sweep_result(sweep, metrics_of(sweep)).points()] == [{}]


@pytest.mark.parametrize(
    "name", [name for name, each in PRESETS.items() if each.study != "product"]
)
def test_every_preset_of_a_model_is_a_valid_sweep(name):
    preset = PRESETS[name]

    sweep = make_sweep(
        MODEL_STUDIES[preset.study], preset.vary, preset.set, range(preset.seeds), source=name
    )

    assert 1 < sweep.size <= 200


@pytest.mark.parametrize(
    ("study", "small"),
    [
        (OMEGA, {"machines": 50, "horizon_s": 200.0}),
        (EXTRA_SLOTS, {"tasks_per_s": 400.0, "capacity_per_s": 50.0}),
        (POLICIES, {"slots": 400, "schedulers": 2, "partitions": 2, "phase_s": 1.0}),
    ],
)
def test_every_model_gives_the_plotted_metrics(study, small):
    metrics = study.run(study.complete(small), 1)

    assert set(study.metrics) <= set(metrics)


def test_the_policies_can_run_one_phase_of_one_load():
    values = POLICIES.complete({"slots": 400, "phase_s": 1.0, "phases": "80"})

    assert "phase2_wait_s" not in POLICIES.run(values, 0)
