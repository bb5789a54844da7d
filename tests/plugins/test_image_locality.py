import numpy as np
import pytest
from hypothesis import given

from roadstead.plugins.image_locality import ImageLocality, ImageNodes
from tests.builders import (
    MIB,
    found_before_score,
    node,
    pod,
    score_with,
    table_of,
)
from tests.plugins.upstream import image_locality_score
from tests.plugins.worlds import both
from tests.strategies import clusters, pods

PLUGIN = ImageLocality()


def wanting(*images, containers=None):
    return pod(images=images, container_count=containers or len(images))


def with_images(*image_sets):
    return table_of(*(node(f"n{i}", images=images) for i, images in enumerate(image_sets, 1)))


def summary_of(table, facts):
    return found_before_score(PLUGIN, table.columns.classes.pod_class(facts), table)


@pytest.mark.parametrize(
    ("size_mib", "score"),
    [(22, 0), (23, 0), (33, 1), (511, 49), (512, 50), (1000, 100), (4000, 100)],
)
def test_sizes_are_scaled_between_23_and_1000_mib(size_mib, score):
    table = with_images({"app:v1": size_mib * MIB})

    assert score_with(PLUGIN, wanting("app:v1"), table) == [score]


def test_a_rare_image_counts_for_less():
    table = with_images({"app:v1": 1000 * MIB}, {}, {"app:v1": 1000 * MIB}, {})

    assert score_with(PLUGIN, wanting("app:v1"), table) == [48, 0, 48, 0]


def test_sizes_of_images_are_summed_and_the_bound_grows_with_the_containers():
    table = with_images({"a:1": 600 * MIB, "b:1": 400 * MIB})

    assert score_with(PLUGIN, wanting("a:1", "b:1"), table) == [49]
    assert score_with(PLUGIN, wanting("a:1", "a:1"), table) == [59]
    assert score_with(PLUGIN, wanting("a:1", containers=3), table) == [19]


def test_an_image_on_no_node_scores_zero():
    assert score_with(PLUGIN, wanting("other:v1"), with_images({"app:v1": 500 * MIB})) == [0]


def test_the_size_is_that_of_the_first_added_node():
    table = with_images({"app:v1": 100 * MIB}, {"app:v1": 900 * MIB})

    assert score_with(PLUGIN, wanting("app:v1"), table) == [7, 7]
    table.remove_node("n1")
    assert score_with(PLUGIN, wanting("app:v1"), table) == [89]


def test_images_of_removed_nodes_do_not_matter():
    table = with_images({"gone:v1": 500 * MIB}, {"app:v1": 500 * MIB})
    table.remove_node("n1")

    assert score_with(PLUGIN, wanting("gone:v1", "app:v1"), table) == [24]


def test_a_summary_has_image_number_of_nodes_first_arrival_and_size():
    table = with_images({}, {"a:1": 5, "b:1": 7}, {"a:1": 6})

    assert summary_of(table, wanting("b:1", "a:1", "c:1", "a:1")) == ImageNodes(
        (("a:1", 2, 1, 5), ("b:1", 1, 1, 7))
    )
    assert summary_of(table, wanting("c:1")) is None
    assert summary_of(table_of(), wanting("a:1")) is None


def test_all_nodes_count_and_not_only_feasible_ones():
    table = with_images({"a:1": 5}, {"a:1": 5})
    nothing = np.zeros(2, dtype=np.bool_)

    found = found_before_score(PLUGIN, table.classes.pod_class(wanting("a:1")), table, nothing)

    assert found == ImageNodes((("a:1", 2, 0, 5),))


@given(clusters, pods)
def test_scores_equal_upstreams(cluster, wanted):
    table, nodes = both(cluster)

    assert score_with(PLUGIN, wanted, table) == [
        image_locality_score(wanted, each, nodes) for each in nodes
    ]
