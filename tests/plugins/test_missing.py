import pytest

from roadstead.facts.pod import PodClaim, PodIdentity, Volume
from roadstead.framework.cycle_state import CycleState
from roadstead.framework.plugin import PostFilterPlugin, PreEnqueuePlugin
from roadstead.framework.post_filter_answers import PostFilterView
from roadstead.framework.registry import extension_points
from roadstead.plugins import missing
from roadstead.protocol.errors import UnsupportedError
from roadstead.protocol.status import SKIP, SUCCESS, Code
from tests.builders import evaluated, filter_with, node, pod, profile_of, table_of

KINDS = [missing.DynamicResources]
HARMLESS = tuple(
    Volume(f"v{i}", kind, ()) for i, kind in enumerate(("emptyDir", "configMap", "secret"))
)


def pre_filtered(kind, facts):
    table = table_of(node("n1"))
    return kind().pre_filter(CycleState(1), table.classes.pod_class(facts), table)


@pytest.mark.parametrize("kind", KINDS)
def test_a_pod_without_need_of_the_plugin_is_skipped(kind):
    table = table_of(node("n1"), node("n2"))
    plugin, pod_class = kind(), table.classes.pod_class(pod(volumes=HARMLESS))

    assert pre_filtered(kind, pod(volumes=HARMLESS)).status == SKIP
    assert plugin.pre_score(CycleState(2), pod_class, None, None) == SKIP
    assert plugin.score(CycleState(2), pod_class, table).tolist() == [0, 0]
    assert filter_with(plugin, pod(), table) == [None, None]
    assert plugin.sign(pod(volumes=HARMLESS)) == plugin.sign(pod()) == ""


def test_resource_claims_are_refused_by_field():
    with pytest.raises(UnsupportedError, match=r"spec.resourceClaims: needs .* DynamicResources"):
        pre_filtered(missing.DynamicResources, pod(device_claims=(PodClaim("gpu"),)))


def test_a_refused_pod_never_passes_an_evaluation():
    profile = profile_of({"preFilter": ["DynamicResources"], "filter": ["DynamicResources"]})

    with pytest.raises(UnsupportedError):
        evaluated(profile, pod(device_claims=(PodClaim("gpu"),)), table_of(node("n1")))


@pytest.mark.parametrize("kind", [missing.DynamicResources])
def test_reserve_and_pre_bind_do_nothing(kind):
    plugin, identity = kind(), PodIdentity("uid", "default", "web")

    assert plugin.reserve(identity, pod(), "n1") is SUCCESS
    assert plugin.unreserve(identity, pod(), "n1") is None
    assert plugin.pre_bind(identity, pod(), "n1") is SUCCESS
    assert extension_points(kind) >= {"preFilter", "filter", "reserve", "preBind"}


def test_dynamic_resources_have_no_claims_to_release():
    plugin = missing.DynamicResources()

    result = plugin.post_filter(pod(), PostFilterView(3, 3, SUCCESS))

    assert result.status.code is Code.UNSCHEDULABLE
    assert result.status.reasons == ("no new claims to deallocate",)
    assert plugin.pre_enqueue(pod()) is SUCCESS
    assert isinstance(plugin, PostFilterPlugin)
    assert isinstance(plugin, PreEnqueuePlugin)


def test_dynamic_resources_fail_without_their_pre_filter():
    failed = PostFilterView(3, 0, SUCCESS, unreached=("DynamicResources",))

    status = missing.DynamicResources().post_filter(pod(), failed).status

    assert (status.code, status.reasons) == (Code.ERROR, ("not found",))


def test_a_missing_plugin_must_declare_its_reads():
    class Vague(missing.MissingPlugin):
        name = "Vague"

    with pytest.raises(AssertionError, match="Vague must override `need`"):
        pre_filtered(Vague, pod())
