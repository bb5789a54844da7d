"""Selectors are evaluated once for devices that differ only in what the selector does not read."""

import pytest

from roadstead.devices.selector_reads import reads_of
from roadstead.devices.selectors import SelectorFailure, SelectorResults, query_of
from roadstead.facts.devices import AttributeFacts, DeviceCapacity, DeviceFacts
from tests.devices.making import GPU, StubSelector, compile_stub, device, driver_is, model_is

DOMAIN = f'device.attributes["{GPU}"]'


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ("true", set()),
        ('device.driver == "x" && device.allowMultipleAllocations', set()),
        (f'{DOMAIN}.model == "a"', {"model"}),
        (f'{DOMAIN}["model"] == "a"', {"model"}),
        (f"{DOMAIN}.?numa.orValue(0) < 1", {"numa"}),
        (f'{DOMAIN}[?"model"].orValue("") != "device"', {"model"}),
        (f'"ecc" in {DOMAIN} && {DOMAIN}.ecc', {"ecc"}),
        (f"has({DOMAIN}.ready)", {"ready"}),
        (f"{DOMAIN}.version.major() == 1", {"version"}),
        ('device.capacity["x"].memory.compareTo(quantity("1")) > 0', {"memory"}),
        (f'[1, 2].exists(x, x == {DOMAIN}.numa) || {DOMAIN}.model == "b"', {"numa", "model"}),
    ],
)
def test_attributes_that_an_expression_reads_are_found_in_its_text(expression, names):
    assert reads_of([expression]).names == names


@pytest.mark.parametrize(
    "expression",
    [
        f"{DOMAIN}.size() > 1",
        f"size({DOMAIN}) > 1",
        f'{DOMAIN}.exists(k, k == "a")',
        f'cel.bind(d, {DOMAIN}, d.model == "a")',
        f'"{GPU}" in device.attributes',
        "device.attributes[device.driver].model == 1",
        'device["driver"] == "x"',
        "[1].exists(device, device == 1)",
        f'{DOMAIN}["mo" + "del"] == "a"',
        f'{DOMAIN}[r"model"] == "a"',
        f'{DOMAIN}[?"mo" + "del"].hasValue()',
        f'"mo" + "del" in {DOMAIN}',
        f'{DOMAIN}["mod\\x65l"] == "a"',
        f'true // "{DOMAIN}',
        'x.device.driver == ""',
    ],
)
def test_an_expression_of_another_form_is_taken_to_read_everything(expression):
    assert reads_of([expression]).names is None
    assert reads_of(["true", expression]).names is None


def test_devices_equal_in_all_read_attributes_have_one_key():
    reads = reads_of([model_is("a")])
    one, two = device("one", model="a", numa=0), device("two", model="a", numa=1)
    assert reads.key(GPU, one) == reads.key(GPU, two)
    assert reads.key("other", one) != reads.key(GPU, two)
    qualified = DeviceFacts("x", (AttributeFacts(f"{GPU}/model", "string", "a"),))
    assert reads.key(GPU, qualified) != reads.key(GPU, one)


def test_attributes_that_may_be_invalid_are_always_in_the_key():
    reads = reads_of(["true"])
    broken = DeviceFacts("x", (AttributeFacts("firmware", "version", "1"),))
    assert reads.key(GPU, broken) != reads.key(GPU, DeviceFacts("x"))


def test_unread_capacities_are_not_in_the_key():
    sized = DeviceFacts("x", capacity=(DeviceCapacity("memory", "1Gi"),))
    assert reads_of(["true"]).key(GPU, sized) == reads_of(["true"]).key(GPU, DeviceFacts("y"))
    whole = reads_of([f"{DOMAIN}.size() > 0"])
    assert whole.key(GPU, sized) != whole.key(GPU, DeviceFacts("y"))


class TestResults:
    def results(self):
        compiled = []

        def compile_counted(expression: str) -> StubSelector:
            compiled.append(expression)
            return compile_stub(expression)

        return SelectorResults(compile_counted), compiled

    def test_all_selectors_of_class_and_request_must_match(self):
        results, compiled = self.results()
        query = query_of((driver_is(GPU),), ("true", model_is("a")))
        assert results.evaluate(query, GPU, device("x", model="a")) is True
        assert results.evaluate(query, GPU, device("y", model="b")) is False
        assert results.evaluate(query, "other", device("z")) is False, "the class comes first"
        assert len(compiled) == 3, "every expression is compiled once"

    def test_a_failure_names_its_selector(self):
        results, compiled = self.results()
        query = query_of(("true", "1"), ())
        failure = SelectorFailure(True, 1, "CEL compile error: compilation failed")
        assert results.evaluate(query, GPU, device("x")) == failure
        assert results.evaluate(query, GPU, device("y", model="b")) == failure
        assert results.matches("1", GPU, device("z")) == failure.text
        assert compiled == ["true", "1"], "an expression that does not compile is tried once"
        query = query_of(("true",), (model_is("a"),))
        failure = SelectorFailure(False, 0, "CEL runtime error: no such key: model")
        assert results.evaluate(query, GPU, device("x")) == failure

    def test_equal_queries_are_one(self):
        assert query_of(("a",), ()) is query_of(("a",), ())
