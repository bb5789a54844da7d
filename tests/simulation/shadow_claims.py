"""The bindings of claims and volumes, next to the plain list of all their changes.

Cache and binder keep a log of changes; the state on which they decide must be the cluster's initial
state with all these changes applied, whatever was tried and undone meanwhile. `AssumedClaims`
decides whether a pod's claims can be bound on a node, but a new instance each time.
"""

from roadstead.devices.state import DeviceState
from roadstead.facts.devices import DevicesFacts
from roadstead.facts.storage import StorageFacts
from roadstead.storage import AssumedClaims, StorageState


class PlainClaims:
    """storage: the product's initial one."""

    def __init__(self, storage):
        devices = storage.devices
        self._gates = devices.gates
        self._devices = DevicesFacts(
            *(tuple(each.values()) for each in (devices.slices, devices.classes, devices.claims))
        )
        self._facts = StorageFacts(
            volumes=tuple(storage.volumes.values()),
            claims=tuple(storage.claims.values()),
            classes=tuple(storage.classes.values()),
            csi_nodes=tuple(storage.csi_nodes.values()),
            csi_drivers=tuple(storage.csi_drivers.values()),
            capacities=tuple(each for some in storage.capacities.values() for each in some),
            attachments=tuple(each for some in storage.attachments.values() for each in some),
        )

    def differences(self, log, storage):
        """Return claims and volumes that differ from the result of the log."""
        claims = {each.key: each for each in self._facts.claims}
        volumes = {each.name: each for each in self._facts.volumes}
        of_devices = {each.key: each for each in self._devices.claims}
        for change in log:
            claims |= {each.key: each for each in change.claims}
            for name in change.removed:
                volumes.pop(name, None)
            volumes |= {each.name: each for each in change.volumes}
            for key in change.removed_claims:
                of_devices.pop(key, None)
            of_devices |= {each.key: each for each in change.device_claims}
        for here, there in (
            (storage.claims, claims),
            (storage.volumes, volumes),
            (storage.devices.claims, of_devices),
        ):
            names = {name for name in {*here, *there} if here.get(name) != there.get(name)}
            yield from (f"{here.get(n)}, not {there.get(n)}" for n in sorted(names))

    def can_bind(self, log, uid, facts, node):
        """Whether a pod's claims can be bound on a node after these changes."""
        storage = StorageState(self._facts, DeviceState(self._devices, self._gates))
        for change in log:
            storage.apply(change)
        return AssumedClaims(storage).assume(uid, facts, node) is not None


class ShadowClaims:
    """Follows the claims of a cache's actor. cache: the shadow of its core; it gets the
    differences.
    """

    def __init__(self, actor, cache):
        self._actor, self._cache = actor, cache
        self._volumes = actor.state.volumes
        self._plain = PlainClaims(self._volumes.assumed_claims.storage)
        self._assume, actor.assume = actor.assume, self._assumed
        for name in ("update_assumptions", "load_storage", "end_owner", "remove_pods"):
            setattr(actor, name, self._followed(name, getattr(actor, name)))

    def _followed(self, name, handler):
        async def followed(message):
            answer = await handler(message)
            self._compare(name)
            return answer

        return followed

    def _compare(self, name):
        for each in self._plain.differences(
            self._volumes.log, self._volumes.assumed_claims.storage
        ):
            self._cache.wrong(f"after {name} a claim or a volume is {each}")

    async def _assumed(self, batch):
        """Check around the call: it does not wait, so no other call can run in between."""
        assumed, log = self._volumes.assumed_claims, list(self._volumes.log)
        rows = list(zip(batch.pods.keyed(), batch.nodes, batch.tokens, strict=True))
        tokens, before = {uid: pod[2] for uid, pod in self._cache.pods.items()}, {}
        for uid in tokens:
            before[uid] = {*assumed.keys_of(uid)}
        answer = await self._assume(batch)
        self._compare("assume")
        refused = dict(answer.refused)
        for (uid, _, facts), node, token in rows:
            if token in refused:
                self._compare_refused(uid, facts, node, refused[token], log)
            else:
                # A late copy binds more, where its node was away before.
                before.pop(uid, None)
        for uid, held in before.items():
            known = self._cache.pods.get(uid)
            if known is None or known[2] != tokens[uid]:
                continue
            # Claims that another pod's commit confirmed belong to no attempt any more.
            if {*assumed.keys_of(uid)} & assumed._open.keys() != held & assumed._open.keys():
                self._cache.wrong(f"{uid} holds {assumed.keys_of(uid)} after assume, not {held}")
        return answer

    def _compare_refused(self, uid, facts, node, why, log):
        if uid not in self._cache.pods and (held := self._volumes.assumed_claims.keys_of(uid)):
            self._cache.wrong(f"{uid} is refused ({why}), and holds {held}")
        if "volumes" in why or "devices" in why:
            # Other requests of the batch assume and release claims before and after it.
            host, now = self._cache.nodes[node], self._volumes.log
            logs = (now[:length] for length in range(len(log), len(now) + 1))
            if all(self._plain.can_bind(each, uid, facts, host) for each in logs):
                self._cache.wrong(f"{uid} is refused on {node}, where its claims can be bound")
