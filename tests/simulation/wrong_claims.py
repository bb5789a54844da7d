"""Claims that are bound with a pod, some wrongly; and the problems of a binding."""

import re
from dataclasses import replace

from roadstead.facts.bound_claims import BoundClaims
from roadstead.facts.csi_migration import CSI_DRIVER_OF
from roadstead.facts.storage import (
    NO_PROVISIONER,
    WAIT_FOR_FIRST_CONSUMER,
    ClaimReference,
    CsiSource,
    VolumeFacts,
)

WORDS = (
    ("was not bound with the pod", "missing"),
    ("no pod of the commit waited", "unasked"),
    ("not one claim with one volume", "shape"),
    ("but for its volume", "claim"),
    ("does not name claim", "reference"),
    ("is that of claim", "taken"),
    ("is to be bound on node", "node"),
    ("does not reach", "reach"),
    ("has class", "class"),
    ("has mode", "mode"),
    ("has attributes class", "attributes"),
    (" bytes", "size"),
    ("but for its claim", "volume"),
    ("is being deleted", "deleted"),
    ("lacks an access mode", "access"),
    ("waits for a volume to be made", "made"),
    ("is not one that claim", "selector"),
    ("its class makes none", "none made"),
    ("has not the access modes", "made access"),
    ("was not made by", "maker"),
    ("makes no volumes for the node", "topology"),
    ("no storage of class", "room"),
)
PHASE = re.compile(r"volume \S+ is (Released|not available)$")


def kind_of(text):
    """The subject of a checker's text."""
    if PHASE.search(text):
        return "phase"
    return next((kind for words, kind in WORDS if words in text), None)


class Account:
    """Claims and volumes after the records of a journal."""

    def __init__(self, facts):
        self.facts = facts
        self.claims = {each.key: each for each in facts.claims}
        self.volumes = {each.name: each for each in facts.volumes}
        self._classes = {each.name: each for each in facts.classes}
        self._drivers = {each.name: each for each in facts.csi_drivers}

    def take(self, change):
        self.claims |= {each.key: each for each in change.claims}
        for name in change.removed:
            self.volumes.pop(name, None)
        self.volumes |= {each.name: each for each in change.volumes}

    def maker(self, claim):
        """The provisioner of a claim's class, None for no class."""
        found = self._classes.get(claim.storage_class)
        return found and found.provisioner

    def waiting(self, facts):
        """Keys of a pod's claims that must be bound with it, in its order."""
        found = {}
        for volume in facts.volumes:
            if volume.kind in ("persistentVolumeClaim", "ephemeral"):
                claim = self.claims.get(f"{facts.namespace}/{dict(volume.source)['claimName']}")
                if claim is not None and not claim.volume_name:
                    made_by = self._classes.get(claim.storage_class)
                    if made_by and made_by.binding_mode == WAIT_FOR_FIRST_CONSUMER:
                        found[claim.key] = claim
        return tuple(found)

    def wrong_with(self, claim, change, node):
        """Return the reason for which a waiting claim may not be bound this way."""
        if (len(change.claims), len(change.volumes), change.removed) != (1, 1, ()):
            return {"shape"}
        (after,), (volume,) = change.claims, change.volumes
        found = set(self._unlike(claim, after, volume, node))
        before = self.volumes.get(volume.name)
        if before is None:
            return found | set(self._unmakable(claim, volume, node))
        return found | set(_taken(claim, before, volume))

    def _unlike(self, claim, after, volume, node):
        if after != replace(claim, volume_name=volume.name, has_bind_completed=True):
            yield "claim"
        if volume.claim != ClaimReference(claim.namespace, claim.name, claim.uid):
            yield "reference"
        names = {key: each.volume_name for key, each in self.claims.items() if key != claim.key}
        if volume.name in names.values():
            yield "taken"
        if claim.selected_node and claim.selected_node != node.name:
            yield "node"
        labels = dict(node.labels)
        terms = volume.node_terms
        if terms is not None and not any(term.matches(labels, "") for term in terms):
            yield "reach"
        if volume.storage_class != claim.storage_class:
            yield "class"
        if volume.volume_mode != claim.volume_mode:
            yield "mode"
        if volume.attributes_class != claim.attributes_class:
            yield "attributes"
        if claim.requested_bytes is not None and claim.requested_bytes > volume.capacity_bytes:
            yield "size"

    def _unmakable(self, claim, volume, node):
        made_by = self._classes[claim.storage_class]
        if made_by.provisioner == NO_PROVISIONER:
            yield "none made"
            return
        if volume.access_modes != claim.access_modes:
            yield "made access"
        driver = CSI_DRIVER_OF.get(made_by.provisioner, made_by.provisioner)
        if volume.csi is None or volume.csi.driver not in (driver, made_by.provisioner):
            yield "maker"
        labels = dict(node.labels)
        terms = made_by.allowed_topologies
        open_here = [t for t in terms if t and all(labels.get(k) in values for k, values in t)]
        if terms and not open_here:
            yield "topology"
        counts = self._drivers.get(made_by.provisioner)
        if counts and counts.tracks_capacity and claim.requested_bytes is not None:
            near = [
                each.limit_bytes or 0
                for each in self.facts.capacities
                if each.storage_class == made_by.name
                and each.selector is not None
                and each.selector.matches(labels)
            ]
            if max(near, default=0) < claim.requested_bytes:
                yield "room"


def _taken(claim, before, volume):
    if replace(volume, claim=before.claim, phase=before.phase) != before:
        yield "volume"
    if before.is_terminating:
        yield "deleted"
    owner = before.claim
    if owner is not None:
        if owner not in (
            ClaimReference(claim.namespace, claim.name, claim.uid),
            ClaimReference(claim.namespace, claim.name),
        ):
            yield "taken"
        return
    if before.phase != "Available":
        yield "phase"
    if any(mode not in before.access_modes for mode in claim.access_modes):
        yield "access"
    if claim.selected_node is not None:
        yield "made"
    if claim.selector is not None and not claim.selector.matches(dict(before.labels)):
        yield "selector"


def _bound(claim, volume):
    owner = ClaimReference(claim.namespace, claim.name, claim.uid)
    return BoundClaims(
        (replace(claim, volume_name=volume.name, has_bind_completed=True),),
        (replace(volume, claim=owner, phase="Bound"),),
    )


def binding(draw, account, key, own):
    """A binding of a claim: its own, one with another volume, or a changed one; None for none."""
    claim = account.claims[key]
    how = draw.random()
    if how < 0.08:
        return None
    if how < 0.4 and own is not None:
        return own
    if account.maker(claim) not in (None, NO_PROVISIONER) and draw.random() < 0.5:
        return _bound(claim, _made(draw, account, claim))
    if how < 0.75:
        return _bound(claim, _some_volume(draw, account, claim))
    change = own or _bound(claim, _made(draw, account, claim))
    if how < 0.85:
        change = _bound(claim, _made(draw, account, claim))
    return _changed(draw, change) if draw.random() < 0.6 else change


def _some_volume(draw, account, claim):
    """An existing volume; preferably one that already names a claim of this name."""
    named = {name for name, v in account.volumes.items() if v.claim and v.claim.name == claim.name}
    chosen = named if named and draw.random() < 0.5 else account.volumes
    return account.volumes[draw.choice(sorted(chosen))]


def _made(draw, account, claim):
    """A volume provisioned for a claim, mostly by the provisioner of its class."""
    driver = draw.choice(("disk.csi.example.com", "roomy.csi.example.com", "ebs.csi.aws.com"))
    made_by = account.maker(claim)
    if made_by and draw.random() < 0.7:
        driver = CSI_DRIVER_OF.get(made_by, made_by)
    return VolumeFacts(
        f"pvc-{claim.uid}",
        claim.storage_class,
        claim.requested_bytes or 0,
        claim.access_modes,
        claim.volume_mode,
        claim.attributes_class,
        csi=draw.choice((None, *[CsiSource(driver, "h")] * 4)),
    )


def _changed(draw, change):
    """A binding with one wrong field."""
    (claim,), (volume,) = change.claims, change.volumes
    other = ClaimReference("default", "other", claim.uid)
    return draw.choice(
        (
            replace(change, removed=("free0",)),
            replace(change, volumes=()),
            replace(change, claims=(claim, claim)),
            replace(change, claims=(replace(claim, volume_name="free1"),)),
            replace(change, claims=(replace(claim, has_bind_completed=False),)),
            replace(change, claims=(replace(claim, is_lost=not claim.is_lost),)),
            replace(change, volumes=(replace(volume, claim=other),)),
            replace(change, volumes=(replace(volume, capacity_bytes=1),)),
            replace(change, volumes=(replace(volume, access_modes=()),)),
            replace(change, volumes=(replace(volume, volume_mode="Raw"),)),
            replace(change, volumes=(replace(volume, phase="Available"),)),
        )
    )


def unasked(draw, account, waits):
    """A binding of a claim that no pod of the commit waits for; None where there is none left."""
    others = sorted(key for key in account.claims if key not in waits)
    if not others:
        return None
    claim = account.claims[draw.choice(others)]
    return _bound(claim, account.volumes[draw.choice(sorted(account.volumes))])
