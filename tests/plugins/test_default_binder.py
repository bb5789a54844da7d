from roadstead.facts.pod import PodIdentity
from roadstead.plugins.default_binder import DefaultBinder
from roadstead.protocol.status import SUCCESS
from tests.builders import pod


def test_every_pod_is_sent_to_the_binder():
    identity = PodIdentity("uid", "default", "web")

    assert DefaultBinder().bind(identity, pod(), "n1") is SUCCESS


def test_binding_reads_no_fact_of_the_pod():
    assert DefaultBinder().sign(pod()) == DefaultBinder().sign(pod(cpu=5)) == ()
