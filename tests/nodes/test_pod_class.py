from dataclasses import replace

from roadstead.facts.pod import PodClaim, PodReference
from roadstead.nodes.pod_class import PodClasses
from tests.builders import DEFAULT_MEMORY_BYTES, GPU, MIB, pod


def test_equal_facts_are_one_class():
    classes = PodClasses()
    facts = pod(cpu=100)

    pod_class = classes.pod_class(facts)

    assert classes.pod_class(facts) is pod_class
    assert classes.pod_class(replace(facts)) is pod_class
    assert classes.pod_classes == [pod_class]


def test_other_facts_are_another_class():
    classes = PodClasses()

    first, second = classes.pod_class(pod(cpu=100)), classes.pod_class(pod(cpu=200))

    assert (first.index, second.index) == (0, 1)
    assert classes.pod_class(pod(cpu=100)) is first


def test_requests_become_a_vector_without_zeros_and_unused_resources():
    classes = PodClasses()

    pod_class = classes.pod_class(pod(cpu=250, memory=0, others={GPU: 2, "unheard-of": 3}))

    assert dict(pod_class.coded_requests) == {
        classes.resources.code("cpu"): 250,
        classes.resources.code(GPU): 2,
    }
    assert pod_class.request_of == {"cpu": 250, "memory": 0, GPU: 2}
    assert classes.resources.find("unheard-of") == -1


def test_a_pod_is_scored_with_its_requests_unless_its_facts_differ():
    classes = PodClasses()
    plain = pod(cpu=250, others={GPU: 1})
    own = (("cpu", 100), ("memory", 5 * MIB))

    assert classes.pod_class(plain).nonzero == (250, DEFAULT_MEMORY_BYTES)
    assert classes.pod_class(plain).scoring_requests == {
        "cpu": 250,
        "memory": DEFAULT_MEMORY_BYTES,
        GPU: 1,
    }
    assert classes.pod_class(replace(plain, container_requests=own)).scoring_requests == dict(own)


def test_a_class_is_printed_with_number_namespace_and_requests():
    pod_class = PodClasses().pod_class(pod(cpu=250, namespace="team", labels={"app": "web"}))

    assert repr(pod_class) == "PodClass(0, team, (('cpu', 250),))"
    assert pod_class.labels == {"app": "web"}


def test_classes_that_differ_only_in_amounts_have_one_shape():
    classes = PodClasses()
    one = pod(cpu=100, others={GPU: 1})
    first, more = classes.pod_class(one), classes.pod_class(pod(cpu=200, others={GPU: 3}))
    others = (
        *(pod(cpu=200), pod(cpu=0, others={GPU: 1}), pod(cpu=100, others={GPU: 0})),
        pod(cpu=100, memory=0, others={GPU: 1}),
        *(replace(one, labels=(("a", "b"),)), replace(one, priority=1)),
        replace(one, container_requests=(("cpu", 5),)),
    )

    shapes = {classes.pod_class(each).shape for each in others}

    assert more.shape == first.shape
    assert first.shape not in shapes
    assert len(shapes) == len(others)


def test_classes_that_differ_only_in_names_of_claims_have_one_effect_shape():
    classes = PodClasses()
    one = pod(cpu=100)

    def claiming(name, facts=one):
        claim = PodClaim("gpu", template_name="t", generated=name)
        return classes.pod_class(
            replace(facts, device_claims=(claim,), claims_as=PodReference(name, name))
        )

    first, second, other = claiming("a"), claiming("b"), claiming("a", replace(one, priority=1))

    assert first.effect_shape == second.effect_shape
    assert first.shape != second.shape
    assert first.effect_shape not in (other.effect_shape, classes.pod_class(one).effect_shape)
    assert claiming("a", pod(cpu=200)).shape == first.shape


def test_a_class_with_other_claims_differs_in_nothing_else():
    classes = PodClasses()
    shared = (PodClaim("", claim_name="/0"),)

    def claiming(name, facts):
        claims = (PodClaim("gpu", template_name="t", generated=name),)
        named = PodReference(name, name)
        return classes.pod_class(replace(facts, device_claims=claims, claims_as=named))

    for facts in (pod(cpu=100), pod(cpu=200), pod(cpu=100, labels={"app": "web"})):
        first, second = (classes.with_claims(claiming(n, facts), shared) for n in ("a", "b"))

        assert first is second
        assert first.facts == replace(facts, device_claims=shared)
    other = (*shared, PodClaim("", claim_name="/1"))
    assert classes.with_claims(claiming("c", facts), other).facts.device_claims == other
