"""One life of a binder compared with its shadow: its recovered state, and its answers.

journal ─► plain_journal ─► plain_binder.replayed ─┐ the same?
journal ─► the product's reader and recovery ──────┘ then followed by ShadowBinder
"""

from dataclasses import asdict

from roadstead.facts.bound_claims import BoundClaims
from roadstead.facts.pod import PodFacts
from roadstead.facts.run_mark import EPOCH, VOID, RunMark
from roadstead.journal import JournalRecord, RecordKind
from roadstead.transitions import HISTORY_MAX_STEPS
from tests.simulation.plain_binder import COUNTED, PENDING, replayed, short
from tests.simulation.shadow_binder import ShadowBinder
from tests.simulation.shadow_groups import Gangs
from tests.simulation.shadow_outcomes import ShadowOutcomes
from tests.simulation.shadow_verifier import ShadowCommits

ANSWERS = (
    *("pod_nodes", "resolve", "pods_page", "nodes_page", "evicted_pods", "storage_log"),
    *("bound", "preempted", "fence_owner", "revisions"),
)
DURABLE = (
    *("add_nodes", "add_running", "add_pending", "remove_nodes", "update_pods", "delete_pods"),
    *("evict", "resolve", "fence_owner", "end_run"),
)
"""Calls whose answer promises that the request is durable."""

USUAL = {"max_unflushed": 100_000, "max_tokens": 65_536, "max_gone_remembered": 65_536}
"""The settings of a run, except limits that are smaller."""

STEPS = {"bind": "flush→bound", "load": "load→bound"}

KINDS = {
    "ClusterFacts": RecordKind.CLUSTER,
    "Rules": RecordKind.CLUSTER,
    "RunMark": RecordKind.RUN,
    "BoundClaims": RecordKind.STORAGE,
}


class ShadowLife:
    """Follows one life of a binder actor. journal: the shadow of its journal."""

    def __init__(self, actor, plan, journal, problems):
        self._actor, self._product = actor, actor.binder
        self._journal, self._problems = journal, problems
        checks_versions = plan.settings.conflicts == "version"
        limits = {**USUAL, "checks_versions": checks_versions, **journal.limits.binder}
        self._same("settings", asdict(actor.core.settings), limits)
        ShadowCommits(actor.binder, self._wrong)
        self._binder = ShadowBinder(actor.core, Gangs(plan), self._wrong)
        self._has_begun = not journal.found.records
        self._begin(journal.found.records)
        for name in ANSWERS:
            setattr(actor, name, self._checked(name, getattr(actor, name)))
        for name in DURABLE:
            setattr(actor, name, self._durable(name, getattr(actor, name)))
        ShadowOutcomes(actor, plan, self._binder, self._wrong)
        journal.should_stand = self._should_stand

    def _wrong(self, text):
        if len(self._problems) < 3:
            self._problems.append(f"shadow of the binder: {text}")

    def _same(self, what, here, there):
        if here != there:
            self._wrong(f"{what}: {short(here, there)}")

    # Initial state.

    def _begin(self, records):
        core, binder = self._actor.core, self._binder
        if self._has_begun:
            binder.last_lsn, binder.flushed_lsn = core.last_lsn, core.flushed_lsn
            if self._journal.has_failed:
                # It could not even write its first record.
                binder.halted = core.halted
            binder.subjects = list(self._product.journal.subjects)
            self._same("first kinds", self._journal.kinds(), ["cluster", "cluster"])
            binder.compare("a new journal")
            return
        found, recent, known = replayed(records, core.settings)
        last_lsn = self._journal.found.last_lsn
        self._same("recovered", (core.last_lsn, core.flushed_lsn), (last_lsn, last_lsn))
        self._same_facts("nodes", core.placements.nodes.items(), found.nodes.items())
        pods = {uid: pod.facts for uid, pod in core.pods.present.items()}
        wanted = {uid: pod.facts for uid, pod in found.pods.items()}
        self._same_facts("pods", pods.items(), wanted.items())
        self._same(
            "subjects", [self._raw(each) for each in self._product.journal.subjects], found.subjects
        )
        self._same("listed", list(self._product.outcomes.bound.items()), list(found.listed.items()))
        notes = [(n.uid, n.key, n.node_name, n.preemptor) for n in self._product.outcomes.removed]
        self._same("preempted", notes, found.notes)
        claims = [each for each in self._product.journal.subjects if isinstance(each, BoundClaims)]
        self._same("claims", _claims(self._product.volumes.log), _claims(claims))
        tokens = set(core._tokens._requests)
        if not recent <= tokens <= known or len(tokens) > core.settings.max_tokens:
            self._wrong(f"tokens: {short(tokens, recent)}")
        self._same_revisions(records)
        for uid, step in ((u, STEPS[p.came_by]) for u, p in found.pods.items() if p.came_by):
            history = core.pods.present[uid].history
            if len(history) < HISTORY_MAX_STEPS and step not in history:
                self._wrong(f"{uid} is bound, by {history}")
        self._same_versions(records, found)
        # A snapshot may replace more records than it has.
        found.last_lsn = found.flushed_lsn = last_lsn
        self._adopt(found)
        binder.compare("recovery")

    def _same_facts(self, what, here, there):
        self._same(what, {name: self._raw(facts) for name, facts in here}, dict(there))

    def _raw(self, facts):
        return self._journal.raw(facts)

    def _same_revisions(self, records):
        nodes, pods, gone = {}, {}, set()
        for _, kind, uid, _, node, _, _, epoch, _ in records:
            known = pods.get(uid, 0)
            if kind == "evict" and epoch > known:
                pods[uid] = epoch
                gone.add(uid)
            elif kind == "evict" and uid not in gone:
                pods[uid] = known + 1
                gone.add(uid)
            elif epoch and kind in ("node", "node_gone"):
                nodes[node] = max(epoch, nodes.get(node, 0))
            elif kind == "add" and epoch and epoch >= known:
                pods[uid] = epoch
                gone.discard(uid)
            elif kind == "delete" and epoch > known:
                pods[uid] = epoch
                gone.add(uid)
        self._same("revisions of nodes", dict(self._product.node_revisions.all()), nodes)
        self._same("revisions of pods", dict(self._product.pod_revisions.all()), pods)

    def _same_versions(self, records, found):
        """Each bind to an existing node counts as a change, one after another.

        A snapshot does not show which nodes were away meanwhile.
        """
        if self._journal.found.snapshot or any(kind == "node_gone" for _, kind, *_ in records):
            return
        core = self._actor.core
        bound = [uid for uid, pod in found.pods.items() if pod.state in COUNTED and pod.token]
        bound.sort(key=lambda uid: core.pods.present[uid].lsn)
        versions = [core.pods.present[uid].version for uid in bound]
        if versions != sorted(set(versions)) or max(versions, default=0) > core.version:
            self._wrong(f"pods that were recovered have the versions {versions}")

    def _adopt(self, found):
        """Continue from the replay, with the core's own facts, requests and versions."""
        core, binder = self._actor.core, self._binder
        for name in ("epochs", "voided", "rows", "listed", "last_lsn", "flushed_lsn", "gone"):
            setattr(binder, name, getattr(found, name))
        binder.pods, binder.nodes = found.pods, dict(core.placements.nodes)
        binder.subjects = list(self._product.journal.subjects)
        for uid, pod in (*binder.pods.items(), *binder.gone.items()):
            record = core.pods.find(uid)
            if record is not None:
                # A snapshot has no more about pods removed before it.
                pod.facts, pod.version = record.facts, record.version
        for token, (request, decision) in binder._tokens_there().items():
            pod = binder.find(request.uid)
            wanted = token, pod.uid, pod.key, pod.node, pod.owner, pod.epoch
            asked = request.token, request.uid, request.key, request.node_name
            self._same("a token", (*asked, request.owner, request.epoch), wanted)
            self._same(f"the answer of {token}", decision, pod.bound)
            binder.remember(token, request, pod.bound)

    # Answers.

    def _checked(self, name, original):
        async def handler(message):
            answer = await original(message)
            wanted = getattr(self, f"_{name}")(message)
            self._same(name, self._answered(name, answer), wanted)
            return answer

        return handler

    def _durable(self, name, original):
        async def handler(message):
            answer = await original(message)
            if self._actor.core.halted is not None:
                self._wrong(f"{name} is answered, and the journal has failed")
            return answer

        return handler

    def _answered(self, name, answer):
        if name == "fence_owner":
            return None
        if name == "revisions":
            return answer.nodes, answer.pods
        if name in ("pod_nodes", "resolve"):
            return answer.nodes
        if name == "pods_page":
            pods = list(answer.pods.keyed())
            return pods, answer.nodes, answer.next_start, answer.ran, answer.pods.revision
        if name == "nodes_page":
            return list(answer.nodes), answer.next_start, answer.revision
        if name == "evicted_pods":
            return list(answer.keyed())
        if name == "storage_log":
            return _claims(answer.changes)
        if name == "bound":
            return answer.uids, answer.nodes, answer.total
        return answer.pods, answer.total

    def _word(self, uid):
        pod = self._binder.pods.get(uid)
        return None if pod is None else "" if pod.state == PENDING else pod.node

    def _pod_nodes(self, ask):
        return tuple(map(self._word, ask.uids))

    def _resolve(self, ask):
        binder = self._binder
        # So many are remembered; the binder's shadow checks which one is forgotten next.
        is_full = len(binder.voided) >= binder.settings.max_tokens
        for uid, token in zip(ask.uids, ask.tokens, strict=True):
            if not (self._word(uid) or token in binder.voided or is_full):
                self._wrong(f"{token} is resolved, and not void")
        return self._pod_nodes(ask)

    def _fence_owner(self, owner):
        if self._binder.epochs.get(owner.name, -1) < owner.epoch:
            self._wrong(f"{owner} is fenced, and earlier epochs are not over")

    def _pods_page(self, ask):
        pods = list(self._binder.pods.values())
        known = self._actor.core.pods
        page, next_start = _page_of(pods, known.begun - len(known.present), ask)
        counted = [each.state in COUNTED for each in page]
        nodes = tuple(each.node if here else "" for each, here in zip(page, counted, strict=True))
        ran = tuple(n for n, each in enumerate(page) if counted[n] and not each.token)
        rows = [(each.uid, each.key, each.facts) for each in page]
        return rows, nodes, next_start, ran, self._product.pod_revisions.latest

    def _nodes_page(self, ask):
        nodes = [self._binder.nodes[name] for name in self._actor.core.placements.nodes]
        page, next_start = _page_of(nodes, self._actor.core.nodes_removed, ask)
        return page, next_start, self._product.node_revisions.latest

    def _evicted_pods(self, _):
        """Pods evicted too long ago have only their name left."""
        pods = [(note.uid, note.key) for note in self._product.outcomes.removed]
        known = {uid: self._binder.find(uid) for uid, _ in pods}
        nothing = {uid: PodFacts(key.partition("/")[0]) for uid, key in pods}
        return [(u, key, known[u].facts if known[u] else nothing[u]) for u, key in pods]

    def _revisions(self, _):
        return self._product.node_revisions.all(), self._product.pod_revisions.all()

    def _storage_log(self, _):
        return _claims(
            each for each in self._product.journal.subjects if isinstance(each, BoundClaims)
        )

    def _bound(self, ask):
        bound = list(self._binder.listed.items())
        page = bound[ask.start : ask.start + ask.count]
        return tuple(uid for uid, _ in page), tuple(node for _, node in page), len(bound)

    def _preempted(self, ask):
        notes = self._product.outcomes.removed
        return tuple(notes[ask.start : ask.start + ask.count]), len(notes)

    # Contents of a snapshot.

    def _should_stand(self):
        """Each item once, in the order of recovery."""
        binder = self._binder
        product = self._product
        revisions, pod_revisions = (
            dict(product.node_revisions.all()),
            dict(product.pod_revisions.all()),
        )
        nobody = "", "", ""
        for subject in product.journal.subjects:
            yield JournalRecord(0, KINDS[type(subject).__name__], *nobody, subject=subject)
        for name in product.core.placements.nodes:
            facts, revision = binder.nodes[name], revisions.pop(name, 0)
            yield JournalRecord(0, RecordKind.NODE, *[name] * 3, epoch=revision, subject=facts)
        for name, revision in revisions.items():
            yield JournalRecord(0, RecordKind.NODE_GONE, *[name] * 3, epoch=revision)
        for owner, epoch in binder.epochs.items():
            how = {"owner": owner, "epoch": epoch, "subject": RunMark(EPOCH)}
            yield JournalRecord(0, RecordKind.RUN, *nobody, **how)
        for token in binder.voided:
            yield JournalRecord(0, RecordKind.RUN, *nobody, token, subject=RunMark(VOID))
        for pod in sorted(binder.pods.values(), key=lambda pod: pod.lsn):
            yield from self._pod_stands(pod, pod_revisions.get(pod.uid, 0))
        preempted = product.outcomes.removed
        gone = {each.uid: each for each in preempted if each.uid not in binder.pods}
        for note in gone.values():
            kind = RecordKind.EVICT if note.preemptor else RecordKind.DELETE
            who, by = (note.uid, note.key, note.node_name), note.preemptor
            yield JournalRecord(0, kind, *who, owner=by, epoch=pod_revisions.get(note.uid, 0))
        for uid, pod in binder.gone.items():
            if uid not in gone:
                who, revision = (uid, pod.key, ""), pod_revisions.get(uid, 0)
                yield JournalRecord(0, RecordKind.DELETE, *who, epoch=revision)

    def _pod_stands(self, pod, revision):
        who = pod.uid, pod.key, pod.node
        if pod.state not in COUNTED:
            yield JournalRecord(pod.lsn, RecordKind.ADD, *who, epoch=revision, facts=pod.facts)
            return
        request, _ = self._binder.tokens.get(pod.token, (pod, None))
        by = pod.token, pod.owner, pod.epoch
        yield JournalRecord(pod.lsn, RecordKind.LOAD, *who, *by, facts=request.facts)
        if revision or request.facts != pod.facts:
            yield JournalRecord(0, RecordKind.ADD, *who, epoch=revision, facts=pod.facts)


def _page_of(items, removed, ask):
    """Return a page and the start of the next one: an index plus the number of removals."""
    start = max(0, ask.start - removed)
    stop = start + ask.count
    return items[start:stop], stop + removed if items[stop:] else 0


def _claims(changes):
    return [
        (each.claims, each.volumes, each.removed, each.device_claims, each.removed_claims)
        for each in changes
    ]
