"""Random calls of a cache, for situations that runs seldom reach: a new cache, with a run's plan,
nodes and pods and with small limits, is called at random, and followed by its shadows.

Attempts that arrive late or twice, pods and nodes that are removed and added again, claims,
nominations, lives of schedulers that end, new followers, and a binder whose answers are drawn.
"""

import asyncio
import random
from dataclasses import replace
from unittest.mock import patch

from roadstead import run_parts
from roadstead.actors.cache import actor as cache_actor
from roadstead.actors.cache import encoding, recovery
from roadstead.actors.interface import NOTHING, UNFENCED
from roadstead.actors.messages import (
    APPLY,
    AssumeBatch,
    ChangesApplied,
    NominateBatch,
    RunningPods,
    UpdateAssumptions,
    node_batch,
    pod_list,
)
from roadstead.actors.messages.changes import NodeNames
from roadstead.actors.messages.recovery import (
    RESOLVE,
    STORAGE_LOG,
    EndOwner,
    LastRevisions,
    OwnerEpoch,
    PodNodes,
    PodRemoval,
    Restream,
    StorageLog,
    Uids,
)
from roadstead.actors.names import BINDER
from roadstead.cache import CacheSettings, PodOnNode
from roadstead.cache.volumes import CacheVolumes
from roadstead.facts.pod import PodIdentity, Volume
from roadstead.nodes.partitioning import partitioning_over
from roadstead.protocol.errors import IllegalTransitionError
from tests.builders import GIB, pod
from tests.simulation.shadow_cache import ShadowCache
from tests.simulation.shadow_claims import ShadowClaims
from tests.simulation.shadow_refill import ShadowRefill

CALLS = 120
PODS = 12
OWNERS = ("scheduler-0", "scheduler-1")


async def problems_of(plan, scenario, drawn):
    """Return the first few differences between a cache that is called at random and its shadows."""
    draw = random.Random(f"ramble cache {drawn}")
    settings = {
        "assume_s": draw.choice((1.5, 6.0)),
        "bind_s": draw.choice((0.5, 3.0)),
        "ask_again_s": draw.choice((0.5, 2.0)),
        "max_gone_remembered": draw.choice((1, 4, 1000)),
    }
    with (
        patch.object(run_parts, "CacheSettings", lambda **_: CacheSettings(**settings)),
        patch.object(encoding, "PAGE", draw.choice((1, 3, 5000))),
        patch.object(recovery, "COMPARE_S", 2.0),
        patch.object(recovery, "COMPARED_MAX", draw.choice((8, 100_000))),
    ):
        ramble = _Ramble(plan, scenario, draw)
        try:
            await ramble.begin()
            for number in range(CALLS):
                await ramble.step()
                if ramble.shadow.problems:
                    return [f"call {number} at random: {each}" for each in ramble.shadow.problems]
            ramble.shadow.look()
            ramble.actor.core.validate()
        finally:
            ramble.actor.release()
    return ramble.shadow.problems


class _Others:
    """A directory of all other actors: the binder's answers are drawn, the rest accept all
    messages.
    """

    def __init__(self, ramble):
        self._ramble = ramble

    def find(self, name, stamp=UNFENCED):
        return _Other(name, self._ramble)


class _Other:
    def __init__(self, name, ramble):
        self.name, self._ramble = name, ramble

    async def call(self, method, message, *, timeout_s):
        if self.name == BINDER:
            await asyncio.sleep(self._ramble.draw.choice((0.0, 0.0, 0.3)))
        if method is APPLY:
            return ChangesApplied(receives_requests=self._ramble.draw.random() < 0.5)
        if method is RESOLVE:
            return PodNodes(self._ramble.nodes_of(message.uids))
        return StorageLog(self._ramble.log()) if method is STORAGE_LOG else NOTHING


class _Ramble:
    """One cache. attempts: (uid, token, facts, node) of the assumed pods, in order."""

    def __init__(self, plan, scenario, draw):
        self.draw, self._plan = draw, plan
        self.actor = cache_actor.CacheActor(plan, _Others(self), is_new=draw.random() < 0.5)
        self.shadow = ShadowCache(self.actor.core)
        ShadowRefill(self.actor, self.shadow, 0.0)
        ShadowClaims(self.actor, self.shadow)
        self._core, self._epochs = self.actor.core, dict.fromkeys(OWNERS, 1)
        self._tokens, self._revision, self._attempts = 0, 1, []
        self._pods = self._some_pods(scenario)
        self._classes = [facts for _, facts in self._pods]
        large = (("cpu", 64_000), ("memory", 64 * GIB), ("pods", 40))
        self._hosts = [replace(each, allocatable=large) for each in scenario.nodes]
        self._nodes = self._hosts[:8]
        self._homes = dict(self._nodes_with_volumes())

    def _nodes_with_volumes(self):
        """uid → names of the nodes where the claims of a pod can be bound."""
        for who, facts in self._pods:
            if facts.may_bind_claims:
                names = []
                for node in self._nodes:
                    found = self._volumes().assume(who.uid, facts, node)
                    if found is not None and (found.bindings or found.device_claims):
                        names.append(node.name)
                yield who.uid, names

    def _volumes(self):
        """The volumes of a new cache."""
        return CacheVolumes(self._plan.storage_state(), self._plan.binding_profiles())

    def _some_pods(self, scenario):
        pods = self.draw.sample(scenario.pods, min(PODS, len(scenario.pods)))
        volumes = [
            Volume("data", "persistentVolumeClaim", (("claimName", f"local{number}"),))
            for number in (0, 0, 1, 2)
        ]
        plain = [pod(cpu=50, priority=n * 10, volumes=(v,)) for n, v in enumerate(volumes)]
        plain.append(pod(cpu=50, volumes=(volumes[0], replace(volumes[2], name="more"))))
        return pods + [
            (PodIdentity(f"uid-r{number}", each.namespace, f"r{number}"), each)
            for number, each in enumerate(plain)
        ]

    async def step(self):
        kinds = (
            *(
                (self._assume, 12),
                (self._update_assumptions, 6),
                (self._add_nodes, 3),
                (self._remove_nodes, 1),
            ),
            *((self._run, 2), (self._update_running, 1), (self._nominate, 3), (self._gone, 3)),
            *((self._owner_ends, 3), (self._restream, 2), (self._know, 1), (self._ask, 2)),
            *((self._time, 5), (self._contradict, 2), (self._begin_anew, 2)),
        )
        (kind,) = self.draw.choices([k for k, _ in kinds], [weight for _, weight in kinds])
        await kind()

    async def _do(self, name, message):
        try:
            return await getattr(self.actor, name)(message)
        except IllegalTransitionError:
            return None

    def _some(self, things, least=0, most=3):
        things = list(things)
        return self.draw.sample(things, min(len(things), self.draw.randint(least, most)))

    def _names(self, count):
        names = [*(node.name for node in self._nodes), "away"]
        weights = [*(5 for _ in self._nodes), 1]
        return tuple(self.draw.choices(names, weights, k=count))

    def _next_revision(self):
        draw = self.draw.random()
        self._revision += draw < 0.6
        return self._revision if draw < 0.7 else 0 if draw < 0.9 else max(0, self._revision - 2)

    def nodes_of(self, uids):
        """The binder's answers: mostly the node where a pod is, or none."""
        draw = self.draw
        return tuple(
            draw.choice((self._core.node_of(uid), self._core.node_of(uid), "", None))
            for uid in uids
        )

    def log(self):
        """The changes that commits made, among those made here."""
        return tuple(each for each in self.actor.state.volumes.log if self.draw.random() < 0.5)

    # Attempts.

    async def _assume(self):
        draw = self.draw
        pods = self._some(self._pods, 1, 5)
        owner = draw.choice(OWNERS)
        epoch = max(1, self._epochs[owner] - (draw.random() < 0.3))
        nodes, tokens = [*self._names(len(pods))], []
        for place, (who, _) in enumerate(pods):
            if draw.random() < 0.7 and (homes := self._homes.get(who.uid)):
                nodes[place] = draw.choice(homes)
            self._tokens += 1
            tokens.append(f"{owner}/{epoch}/{self._tokens}")
        rows = list(zip(pods, nodes, tokens, strict=True))
        if self._attempts and draw.random() < 0.3:
            # A late copy, sometimes in the middle of a batch.
            rows = (
                [draw.choice(self._attempts), *rows]
                if draw.random() < 0.5
                else ([draw.choice(self._attempts)])
            )
        self._attempts += rows
        batch = pod_list(pod for pod, _, _ in rows)
        nodes, tokens = tuple(n for _, n, _ in rows), tuple(t for _, _, t in rows)
        await self._do("assume", AssumeBatch(batch, nodes, tokens))

    def _pairs(self, most=3):
        chosen = self._some(self._attempts[-20:], 0, most)
        pairs = [(who.uid, token) for (who, _), _, token in chosen]
        now = [(each.uid, each.token) for each in self._core.unconfirmed()]
        return (*pairs[:1], *self._some(now, 0, most)) if self.draw.random() < 0.9 else (*pairs,)

    async def _update_assumptions(self):
        rows = tuple((name, self.draw.randint(1, 30)) for name in self._names(2))
        confirm = tuple(uid for uid, _ in self._pairs(2))
        finish = tuple(dict.fromkeys(self._pairs()))
        message = UpdateAssumptions(tuple(dict.fromkeys(self._pairs())), finish, confirm, rows=rows)
        await self._do("update_assumptions", message)

    async def _owner_ends(self, name=None):
        self._epochs[name := name or self.draw.choice(OWNERS)] += self.draw.random() < 0.5
        owner = OwnerEpoch(name, self._epochs[name])
        held = await self._do("assumed_by", owner)
        uids = held.uids if self.draw.random() < 0.8 else held.uids[1:]
        await self._do("end_owner", EndOwner(owner, uids, self.nodes_of(uids)))

    async def _begin_anew(self):
        self._epochs[self.draw.choice(OWNERS)] += 1

    async def _time(self):
        await asyncio.sleep(self.draw.choice((0.1, 0.5, 1.0, 2.0)))

    # The cluster.

    async def _add_nodes(self):
        nodes = self._some(self._nodes, 1, 4)
        if self.draw.random() < 0.3:
            nodes = [replace(each, labels=(*each.labels, ("z", "z"))) for each in nodes]
        is_first = not self._core.placements.nodes
        await self._do("add_nodes", node_batch(nodes, self._next_revision()))
        if is_first:
            self._compare_parts([e for e in nodes if e.name in self._core.placements.nodes])

    def _compare_parts(self, nodes):
        """The first nodes are assigned to partitions at once, whatever was known of them before."""
        parts = self.actor.state.partitioning
        fresh = partitioning_over(len(parts.sizes))
        fresh.assign_first(nodes)
        wanted = {each.name: fresh.partition_of(each.name) for each in nodes}
        if (actual := {name: parts.partition_of(name) for name in wanted}) != wanted:
            self.shadow.wrong(f"the first nodes are dealt as {actual}, not {wanted}")

    async def _remove_nodes(self):
        names = tuple(node.name for node in self._some(self._nodes, 1, 1))
        await self._do("remove_nodes", NodeNames(names, self._next_revision()))

    async def _run(self):
        pods = self._some(self._pods, 1, 2)
        nodes = tuple(
            self._core.node_of(who.uid) or node
            for (who, _), node in zip(pods, self._names(len(pods)), strict=True)
        )
        message = RunningPods(pod_list(pods, self._next_revision()), nodes)
        await self._do("add_running", message)

    async def _update_running(self):
        pods = [
            (who, replace(self.draw.choice(self._classes), namespace=who.namespace))
            for who, _ in self._some(self._pods, 1, 2)
        ]
        nodes = tuple(self._core.node_of(who.uid) or "away" for who, _ in pods)
        message = RunningPods(pod_list(pods, self._next_revision()), nodes)
        await self._do("update_running", message)

    async def _gone(self):
        # Often pods that are assumed and hold claims.
        held = self._some(
            self.actor.state.volumes.assumed_claims.holders(), self.draw.randint(0, 1), 1
        )
        uids = (*held, *(who.uid for who, _ in self._some(self._pods, not held, 2)))
        await self._do("remove_pods", PodRemoval(uids, self._next_revision()))
        if held and self.draw.random() < 0.6 and (token := self._core.token_of(held[0])):
            # Its scheduler ends before it returns the attempt.
            name, _, _ = token.split("/")
            self._epochs[name] += 1
            await self._owner_ends(name)

    async def _nominate(self):
        pods = self._some(self._pods, 1, 4)
        nodes = tuple(self.draw.choice((name, name, "")) for name in self._names(len(pods)))
        preempts = tuple(self.draw.random() < 0.4 for _ in pods)
        gone = tuple(who.uid for who, _ in self._some(self._pods, 0, 1))
        await self._do("nominate", NominateBatch(pod_list(pods), nodes, preempts, gone))

    async def _contradict(self):
        """Send cluster events that contradict the state, directly to the core."""
        who, facts = self.draw.choice(self._pods)
        (node,) = self._names(1)
        name, what = self.draw.choice(
            (
                ("update_pod", (who.uid, facts, node)),
                ("confirm", ([PodOnNode(who.uid, who.key, facts, node)],)),
                ("remove_pods", ((who.uid,),)),
                ("remove_node", (node,)),
                ("confirm_assumed", ((who.uid, who.uid),)),
                ("resolve", ((),)),
            )
        )
        try:
            deltas = getattr(self._core, name)(*what)
        except IllegalTransitionError:
            return
        if name == "remove_node":
            self.actor.state.partitioning.remove(node)
            self.actor.state.versions.drop(node)
        if isinstance(deltas, list):
            self.actor.stream.send(deltas)

    # New lives.

    async def _restream(self):
        follower = self.draw.choice(self.actor.stream.followers)
        await self._do("restream", Restream(follower, self.draw.randint(1, 3)))

    async def _know(self):
        some = [
            (who.uid, self.draw.randint(0, self._revision)) for who, _ in self._some(self._pods)
        ]
        nodes = [(name, self.draw.randint(0, self._revision)) for name in self._names(1)]
        await self._do("merge_revisions", LastRevisions(tuple(nodes), tuple(some)))
        await self._do("load_storage", StorageLog(self._commits()))

    def _commits(self):
        """Claim changes of commits before this cache began; later copies change nothing."""
        volumes = self._volumes()
        for who, facts in self._pods:
            if facts.may_bind_claims and self.draw.random() < 0.5:
                any(volumes.assume(who.uid, facts, node) for node in self._hosts)
        return tuple(volumes.log)

    async def begin(self):
        """Sometimes fill it as a new cache is filled."""
        if self.draw.random() < 0.5:
            await self._know()

    async def _ask(self):
        await self._do("nominated", Uids(()))
        await self._do("compare", NOTHING)
