"""A decision stays on a scheduler's own table until the cache confirms it, or it is undone."""

from roadstead.cycle.batch import Decision, PodInCycle
from roadstead.cycle.tentative import Tentative
from tests.builders import node, pod, table_of


def stands_on(tentative, uid, node_name, pod_class):
    """Whether a confirmed pod was on its node already."""
    return not tentative.confirm([uid], [node_name], [pod_class])


class Stand:
    """A table with a pod that was decided for n1, and may be nominated to n1."""

    def __init__(self, facts=None, *, is_nominated=False):
        self.table = table_of(node("n1"), node("n2"))
        self.pod_class = self.table.classes.pod_class(facts or pod(cpu=1000))
        self.tentative = Tentative(self.table)
        if is_nominated:
            self.tentative.nominate("u1", "n1", self.pod_class)
        self.decide()

    def decide(self):
        one = PodInCycle("u1", "default/u1", self.pod_class, "class")
        self.tentative.remove_from_table([one])
        self.table.withdraw("n1", self.pod_class)
        self.table.add_pod("n1", self.pod_class, uid="u1")
        self.tentative.record_decisions([Decision(one, "n1")])

    def nominated(self):
        return sum(self.table.nominations.to("n1").values())

    def counts(self):
        return [self.table.row_facts(name)["pod_count"] for name in ("n1", "n2")]


def test_a_pod_that_the_cache_confirms_on_its_decided_node_is_there_already():
    stand = Stand()

    assert stands_on(stand.tentative, "u1", "n1", stand.pod_class)
    stand.tentative.undo_unconfirmed()

    assert stand.counts() == [1, 0]


def test_a_pod_confirmed_on_another_node_is_removed_from_its_decided_node():
    stand = Stand()

    assert not stands_on(stand.tentative, "u1", "n2", stand.pod_class)

    assert stand.counts() == [0, 0]
    assert len(stand.tentative) == 0


def test_a_pod_of_another_scheduler_is_ignored():
    assert not stands_on(Stand().tentative, "u2", "n1", pod())


def test_an_unassumed_pod_is_removed_from_the_table():
    stand = Stand()

    stand.tentative.undo_unconfirmed()

    assert stand.counts() == [0, 0]


def test_a_removed_node_removes_its_tentative_pods():
    stand = Stand()
    stand.table.remove_node("n1")
    stand.table.add_node(node("n1"))

    stand.tentative.undo_unconfirmed()

    assert stand.counts() == [0, 0]


def test_a_pod_removed_with_its_node_returns_with_the_node():
    stand = Stand()
    stand.table.remove_node("n1")
    stand.table.add_node(node("n1"))

    assert not stands_on(stand.tentative, "u1", "n1", stand.pod_class)
    assert stand.counts() == [0, 0]


def test_a_nominated_pod_that_was_not_assumed_is_nominated_again():
    stand = Stand(pod(cpu=1000, nominated_node_name="n1"), is_nominated=True)

    stand.tentative.undo_unconfirmed()

    assert stand.nominated() == 1


def test_a_nominated_pod_decided_again_before_the_refusal_is_nominated_again():
    stand = Stand(pod(cpu=1000, nominated_node_name="n1"), is_nominated=True)

    stand.decide()
    assert stand.nominated() == 0
    stand.tentative.undo_unconfirmed()

    assert stand.nominated() == 1


def test_a_nominated_pod_whose_node_was_removed_before_is_nominated_again():
    stand = Stand(pod(cpu=1000, nominated_node_name="n2"))
    stand.tentative.nominate("u1", "n2", stand.pod_class)
    stand.decide()
    assert not stand.table.nominations
    stand.table.remove_node("n1")

    again = PodInCycle("u1", "default/u1", stand.pod_class, "class")
    stand.tentative.remove_from_table([again])
    stand.tentative.record_decisions([Decision(again, None)])

    assert sum(stand.table.nominations.to("n2").values()) == 1


def test_no_resources_are_reserved_for_a_pod_that_lost_its_nomination():
    """This is the state after the binder refused the pod: the cache has ended the nomination."""
    stand = Stand(pod(cpu=1000, nominated_node_name="n1"))

    stand.tentative.undo_unconfirmed()

    assert stand.nominated() == 0


def test_a_nomination_that_ended_by_a_placement_ends_once():
    """The cache ends it, too; the nomination of another pod of the same class stays."""
    stand = Stand(pod(cpu=1000, nominated_node_name="n1"), is_nominated=True)
    stand.tentative.nominate("other", "n1", stand.pod_class)

    stand.tentative.withdraw("u1", "n1", stand.pod_class)
    assert stand.nominated() == 1
    stand.tentative.withdraw("other", "n1", stand.pod_class)
    assert stand.nominated() == 0
    stand.tentative.undo_unconfirmed()
    assert stand.nominated() == 0


def test_a_pod_placed_again_before_its_nomination_ends_withdraws_it_once():
    stand = Stand(pod(cpu=1000, nominated_node_name="n1"), is_nominated=True)
    stand.tentative.nominate("other", "n1", stand.pod_class)
    stands_on(stand.tentative, "u1", "n1", stand.pod_class)

    stand.decide()
    assert stand.nominated() == 1
    stand.tentative.withdraw("u1", "n1", stand.pod_class)
    assert stand.nominated() == 1


def test_a_pod_that_names_a_node_in_vain_leaves_other_nominations():
    """The other pod has the same class and node; its nomination stays throughout."""
    stand = Stand(pod(cpu=1000, nominated_node_name="n1"))
    stand.tentative.nominate("other", "n1", stand.pod_class)

    stand.decide()
    assert stand.nominated() == 1
    stand.tentative.withdraw("other", "n1", stand.pod_class)
    stand.tentative.undo_unconfirmed()
    assert stand.nominated() == 0


def test_a_placed_pod_withdraws_its_nomination_to_another_node_than_it_names():
    """The queue may report the new nomination before the cache's changes do."""
    stand = Stand(pod(cpu=1000, nominated_node_name="n1"))
    stand.tentative.undo_unconfirmed()
    stand.tentative.nominate("u1", "n2", stand.pod_class)

    stand.decide()
    assert not stand.table.nominations
    stand.tentative.undo_unconfirmed()
    assert sum(stand.table.nominations.to("n2").values()) == 1


def test_a_leased_pod_without_nomination_reserves_nothing_while_others_are_decided():
    """The cache's change that ends it is under way, or the queue corrects the cache."""
    stand = Stand()
    stand.tentative.undo_unconfirmed()
    stand.tentative.nominate("u1", "n2", stand.pod_class)
    stand.tentative.nominate("other", "n2", stand.pod_class)
    one = PodInCycle("u1", "default/u1", stand.pod_class, "class")

    stand.tentative.remove_from_table([one])
    stand.tentative.record_decisions([Decision(one, None)])
    assert sum(stand.table.nominations.to("n2").values()) == 1

    stand.tentative.undo_unconfirmed()
    assert sum(stand.table.nominations.to("n2").values()) == 2
    stand.tentative.remove_from_table([one])
    stand.tentative.withdraw("u1", "n2", stand.pod_class)
    stand.tentative.undo_unconfirmed()
    assert sum(stand.table.nominations.to("n2").values()) == 1


def decided(name, pod_class, on):
    pod_here = PodInCycle(name, f"default/{name}", pod_class, pod_class)
    return pod_here, Decision(pod_here, on)


class ReportedStand(Stand):
    """A table on which the cache reports a pod on n1 that is decided again."""

    def __init__(self):
        super().__init__()
        self.tentative.confirm(["u1"], ["n1"], [self.pod_class])
        self.again, _ = decided("u1", self.pod_class, None)

    def place(self, on):
        self.table.add_pod(on, self.pod_class, uid="u1")
        self.tentative.record_decisions([decided("u1", self.pod_class, on)[1]])


def test_a_pod_decided_again_counts_once_and_not_against_itself():
    stand = ReportedStand()

    stand.tentative.remove_from_table([stand.again])
    assert stand.counts() == [0, 0]
    stand.place("n2")

    assert stand.counts() == [0, 1]
    stand.table.validate()


def test_a_pod_decided_again_without_a_node_stays_on_its_node():
    stand = ReportedStand()

    stand.tentative.remove_from_table([stand.again])
    stand.tentative.record_decisions([decided("u1", stand.pod_class, None)[1]])

    assert stand.counts() == [1, 0]
    assert [each.uid for each in stand.table.residents.on("n1")] == ["u1"]


def test_a_pod_that_was_set_aside_does_not_return_to_a_removed_node():
    stand = ReportedStand()
    stand.tentative.remove_from_table([stand.again])
    stand.table.remove_node("n1")

    stand.tentative.record_decisions([decided("u1", stand.pod_class, None)[1]])

    assert stand.table.row_facts("n2")["pod_count"] == 0


def test_a_pod_that_was_set_aside_does_not_return_to_a_new_node_of_the_same_name():
    stand = ReportedStand()
    stand.tentative.remove_from_table([stand.again])
    stand.place("n2")
    stand.table.remove_node("n1")
    stand.tentative.node_removed("n1")
    stand.table.add_node(node("n1"))

    stand.tentative.undo_unconfirmed()

    assert stand.counts() == [0, 0]


def test_the_end_of_an_earlier_attempt_may_follow_the_next_decision():
    stand = ReportedStand()
    stand.tentative.remove_from_table([stand.again])
    stand.place("n1")

    assert stand.tentative.forget_removal("u1", "n1")
    assert not stand.tentative.forget_removal("u1", "n1")
    assert stands_on(stand.tentative, "u1", "n1", stand.pod_class)

    assert stand.counts() == [1, 0]
    stand.table.validate()


def test_after_a_refused_decision_the_pod_is_where_the_cache_reports():
    stand = ReportedStand()
    stand.tentative.remove_from_table([stand.again])
    stand.place("n2")

    stand.tentative.undo_unconfirmed()

    assert stand.counts() == [1, 0]
    assert not stand.tentative.forget_removal("u1", "n1")


def test_a_pod_decided_here_and_submitted_again_is_decided_again():
    stand = Stand()
    again, _ = decided("u1", stand.pod_class, None)

    stand.tentative.remove_from_table([again])

    assert stand.counts() == [0, 0]
    assert len(stand.tentative) == 0
    assert not stand.tentative.forget_removal("u1", "n1")
