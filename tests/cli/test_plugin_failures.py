from roadstead.api.plugin_failures import failure_notes
from roadstead.report.result import PendingPod

FAILED = "running Score plugins: plugin \"Mine\" failed with: KeyError: 'zone' (mine.py:9)"


def test_a_failed_plugin_is_named_with_the_first_of_its_pods():
    pending = [
        PendingPod("shop/other", "u0", "0/3 nodes", (("Insufficient cpu", 3),), ("Mine",)),
        PendingPod("shop/a", "u1", FAILED),
        PendingPod("shop/b", "u2", FAILED),
        PendingPod("shop/c", "u3", 'running "Yours" filter plugin: no'),
    ]

    assert [*failure_notes(pending, ["Mine", "Yours"])] == [
        f"Plugin Mine failed for pod shop/a and 1 more: {FAILED}",
        'Plugin Yours failed for pod shop/c: running "Yours" filter plugin: no',
    ]


def test_without_failed_plugins_nothing_is_printed():
    assert [*failure_notes([PendingPod("shop/a", "u1", FAILED)], ["Another"])] == []
