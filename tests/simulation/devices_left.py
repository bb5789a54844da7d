"""Whether free devices of a node suffice for a waiting pod, by the records of a journal alone.

Only plain claims are counted: so many devices of one driver, without constraints. Of others it is
not known whether they fit.
"""

from collections import Counter

from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.devices import EXACT_COUNT
from roadstead.facts.taints import tolerated
from roadstead.invariants.devices import Devices, reaches
from roadstead.journal import RecordKind
from roadstead.protocol.claim_bounds import CLAIM_MAX_CONSUMERS
from tests.simulation.devices import GPU, NIC

COUNTED = (GPU, NIC)


class DevicesLeft:
    """The claims after all records of a run."""

    def __init__(self, records):
        self._devices = Devices()
        for each in records:
            if each.kind is RecordKind.CLUSTER and isinstance(each.subject, ClusterFacts):
                self._devices.begin(each.subject.devices)
            elif each.kind is RecordKind.STORAGE:
                list(self._devices.change(each.subject))

    def suffice(self, uid, facts, node):
        """Whether a pod's claims can be allocated on a node, or are there; False if unknown."""
        wanted = Counter()
        for each in facts.device_claims:
            name = each.claim_name or each.generated
            claim = self._devices.claims.get(f"{facts.namespace}/{name}")
            is_own = claim is not None and (each.claim_name or claim.owner_uid == uid)
            if not is_own:
                return False
            if claim.allocation is not None:
                is_full = len(claim.reserved_for) >= CLAIM_MAX_CONSUMERS
                if is_full or claim.statuses or not reaches(claim, node):
                    return False
                continue
            for request in claim.spec.requests:
                is_counted = request.device_class in COUNTED and not request.alternatives
                is_counted &= request.mode == EXACT_COUNT and not request.has_admin_access
                if not is_counted or claim.spec.constraints:
                    return False
                wanted[request.device_class] += request.count
        return all(count <= self._free(driver, node) for driver, count in wanted.items())

    def _free(self, driver, node):
        """Number of free devices of a driver without a taint that a node reaches."""
        allocated = (e.allocation for e in self._devices.claims.values() if e.allocation)
        used = {r.id for each in allocated for r in each.results if not r.has_admin_access}
        free = (key for key in self._devices.inventory.devices.keys() - used if key[0] == driver)
        return sum(self._is_there(*self._devices.inventory.devices[key], node) for key in free)

    @staticmethod
    def _is_there(of, device, node):
        at = of.placement
        near = at.all_nodes or at.node_name == node.name
        near |= at.terms is not None and any(
            each.matches(dict(node.labels), node.name) for each in at.terms
        )
        return near and all(tolerated(each, ()) for each in device.taints)
