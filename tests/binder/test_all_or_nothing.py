"""An exception during the decision of a batch leaves the binder as if the batch had never been
sent.
"""

from dataclasses import fields

import pytest

from roadstead.binder import BinderCore, BinderSettings, BindRequest, Bound
from roadstead.binder.pods import BinderRecord
from roadstead.binder.tokens import TokenMemory
from roadstead.facts.node import NodeFacts
from roadstead.facts.node_list import NodeList
from roadstead.facts.pod import GroupMembership, PodFacts
from roadstead.placements import TableStore
from roadstead.protocol.status import SUCCESS
from roadstead.transitions import Walk
from tests.inside import counts_of
from tests.journal.memory_journal import MemoryJournal

FACTS = PodFacts(requests=(("cpu", 100),))
GANG = PodFacts(requests=(("cpu", 200),), pod_group=GroupMembership("gang", 2))


class PlannedError(Exception):
    pass


class Hooks:
    """The functions with which a binder decides. fails_at: the call of `verify` that raises."""

    def __init__(self, is_quick=False):
        self.is_quick = is_quick
        self.fails_at = None

    def verify(self, request):
        if self.fails_at is not None:
            self.fails_at -= 1
            if self.fails_at == 0:
                raise PlannedError
        return SUCCESS

    def dry_run(self, request):
        return SUCCESS

    def missing_members(self, facts):
        return 2 if facts.pod_group else 0

    def verify_prefix(self, requests):
        return len(requests) if self.is_quick else 0


def core_of(hooks=None, **settings):
    """A binder with a history: a bound pod, a fenced owner, an answered and a voided token."""
    hooks = hooks or Hooks()
    core = BinderCore(
        TableStore(),
        hooks.verify,
        BinderSettings(checks_versions=not hooks.is_quick, **settings),
        journals_all=True,
        missing_members=hooks.missing_members,
        dry_run=hooks.dry_run,
        verify_prefix=hooks.verify_prefix,
    )
    core.add_nodes(NodeList.of([NodeFacts(f"n{n}") for n in range(3)]))
    facts = {"gang-0": GANG, "gang-1": GANG}
    names = ["old", *(f"pod-{n}" for n in range(12)), *facts]
    core.add_pods([(name, name, facts.get(name, FACTS)) for name in names])
    core.bind([ask("old", token="first"), ask("nobody", token="refused")])
    core.void(["voided"])
    core.flushed(core.last_lsn)
    core.advance_epoch("other", 7)
    return core


def ask(uid, node="n1", token="", owner="s", epoch=3, facts=FACTS, transaction=""):
    return BindRequest(*(token or f"t-{uid}", uid, uid, node, facts, owner, epoch, 99, transaction))


def batch():
    """Acceptances and refusals of many kinds, a gang, a job, and two new owners."""
    return [
        ask("pod-0"),
        ask("pod-1", owner="new", epoch=1),
        ask("pod-0", token="again"),
        ask("gang-0", facts=GANG, node="n2"),
        ask("gang-1", facts=GANG, node="n0"),
        ask("pod-2", owner="other", epoch=6),
        ask("pod-3", node="nowhere"),
        ask("pod-4", token="voided"),
        ask("pod-5", transaction="job"),
        ask("pod-6", transaction="job", node="n0"),
        ask("nobody", token="unknown"),
        ask("pod-7", node="n2"),
    ]


def plain():
    return [ask(f"pod-{n}", node=f"n{n % 3}", owner=f"s{n % 2}") for n in range(12)]


def picture(core):
    names = [each.name for each in fields(BinderRecord)]
    table = core.placements.store.table
    return (
        [tuple(getattr(pod, name) for name in names) for pod in core.pods.present.values()],
        counts_of(core),
        (core.last_lsn, core.flushed_lsn, core.version, core.halted),
        {owner: core.current_epoch(owner) for owner in ("s", "s0", "s1", "new", "other")},
        {name: core.row_versions.row(name) for name in core.placements.nodes},
        {pod.uid: core.placements.node_of(pod.uid) for pod in core.pods.present.values()},
        {name: table.row_facts(name) for name in core.placements.nodes},
    )


STEPS = [
    (Hooks, "verify_prefix"),
    (Hooks, "verify"),
    (Hooks, "dry_run"),
    (Hooks, "missing_members"),
    (BinderCore, "advance_epoch"),
    (TableStore, "add_pod"),
    (TableStore, "add_pods"),
    (TableStore, "missing"),
    (Walk, "move"),
    (TokenMemory, "get"),
    (TokenMemory, "put"),
    (TokenMemory, "add_unanswered"),
]


def failing_at(patched, kind, name, number):
    """Make the n-th call of a method raise."""
    original, calls = getattr(kind, name), []

    def call(*args, **named):
        calls.append(name)
        if len(calls) == number:
            raise PlannedError(f"{name} {number}")
        return original(*args, **named)

    patched.setattr(kind, name, call)
    return calls


@pytest.mark.parametrize(("kind", "name"), STEPS)
@pytest.mark.parametrize("is_quick", [False, True])
def test_an_exception_at_any_step_leaves_nothing_behind(kind, name, is_quick):
    requests = plain() if is_quick else batch()
    expected = core_of(Hooks(is_quick))
    wanted = expected.bind(requests)
    number = 1
    while True:
        core = core_of(Hooks(is_quick))
        before = picture(core)
        with pytest.MonkeyPatch.context() as patched:
            calls = failing_at(patched, kind, name, number)
            try:
                core.bind(requests)
            except PlannedError:
                pass
            else:
                break
        assert len(calls) == number
        assert picture(core) == before, f"{name} {number}"
        core.validate()
        core.placements.store.table.validate()
        # Tokens, too: the same batch gets the answers that it would have got at first.
        assert core.bind(requests) == wanted
        assert picture(core) == picture(expected)
        number += 1


def test_a_pod_accepted_before_the_exception_is_journaled_by_the_next_commit():
    hooks, journal = Hooks(), MemoryJournal()
    core = core_of(hooks)
    journal.last_lsn = core.last_lsn
    hooks.fails_at = 3
    with pytest.raises(PlannedError):
        core.bind(plain())

    (append,) = core.bind(plain())
    journal.append(append.records)
    journal.flush()

    bound = [each.result for each in core.flushed(append.last_lsn)]
    assert [type(each) for each in bound] == [Bound] * 12
    assert [each.lsn for each in bound] == [each.lsn for each in append.records]


def test_a_batch_that_raised_pushes_nothing_out_of_memory():
    hooks = Hooks()
    core = core_of(hooks, max_tokens=2)
    first = core.bind([ask("old", token="first")])
    hooks.fails_at = 3

    with pytest.raises(PlannedError):
        core.bind(plain())

    assert core.bind([ask("old", token="first")]) == first
