"""Tasks select a function by its name in one table; inputs and results are plain data."""

from pkgutil import resolve_name

import pytest

from roadstead.protocol.errors import InputError
from roadstead.protocol.plain_data import CodecError, pack, unpack
from roadstead.sweeps import functions
from roadstead.sweeps.drivers import Failed, Finished, InProcess
from roadstead.sweeps.functions import FUNCTIONS, read_result, run_task
from roadstead.sweeps.tasks import Start, Work

SHARED = pack({"study": "extra-slots"})
TASK = pack({"values": {"tasks_per_s": 400.0, "capacity_per_s": 60.0}, "seed": 1})


@pytest.mark.parametrize("path", FUNCTIONS.values())
def test_every_function_of_the_table_exists_in_this_package(path):
    assert path.startswith("roadstead.")
    assert callable(resolve_name(path))


@pytest.mark.parametrize("name", ["os:system", "roadstead.lab.studies:model_runs", "", "x" * 999])
def test_a_name_outside_of_the_table_is_refused_and_imports_nothing(name, monkeypatch):
    monkeypatch.setattr(functions, "resolve_name", lambda path: pytest.fail("it was imported"))

    with pytest.raises(InputError, match="is none of model, product"):
        run_task(name, SHARED, TASK)


def test_a_result_is_the_same_each_time_and_is_plain():
    first, again = run_task("model", SHARED, TASK), run_task("model", SHARED, TASK)

    assert first == again
    assert read_result(first) == unpack(first)


def test_the_shared_input_is_prepared_once_until_it_changes(monkeypatch):
    prepared = []

    def prepare(shared):
        prepared.append(shared["n"])
        return lambda task: [shared["n"], task["t"]]

    monkeypatch.setattr(functions, "resolve_name", lambda path: prepare)

    results = [
        run_task("model", pack({"n": n}), pack({"t": t})) for n, t in ((1, 1), (1, 2), (2, 1))
    ]

    assert [unpack(each) for each in results] == [[1, 1], [1, 2], [2, 1]]
    assert prepared == [1, 2]


def test_a_task_that_is_no_mapping_is_refused():
    with pytest.raises(InputError, match="must be a mapping"):
        run_task("model", SHARED, pack([1]))


def test_a_result_that_is_no_plain_data_is_refused(monkeypatch):
    monkeypatch.setattr(functions, "resolve_name", lambda path: lambda shared: lambda task: {1, 2})

    with pytest.raises(CodecError, match="cannot be packed"):
        run_task("model", pack({"other": 1}), TASK)


def test_the_driver_of_this_process_runs_one_task_in_each_wait():
    driver = InProcess(Work("model", unpack(SHARED), (unpack(TASK), {"values": {}, "seed": "x"})))

    assert driver.wait() == ()
    driver.start(Start(0, 1))
    assert driver.wait() == (Finished(Start(0, 1), run_task("model", SHARED, TASK)),)


def test_an_expected_error_of_a_task_is_reported_and_another_one_raised(monkeypatch):
    monkeypatch.setattr(functions, "resolve_name", lambda path: pytest.fail)
    missing = InProcess(Work("nothing", {}, ({},)))
    missing.start(Start(0, 1))

    (ended,) = missing.wait()

    assert isinstance(ended, Failed)
    wrong = InProcess(Work("model", {"study": "chess"}, ({},)))
    monkeypatch.undo()
    wrong.start(Start(0, 1))
    with pytest.raises(KeyError):
        wrong.wait()
