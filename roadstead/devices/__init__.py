"""The structured allocator of devices: which devices of a node satisfy the claims of a pod.

    pool         the slices of one driver and pool that a node sees, of the newest generation
    in use       a device that an allocation contains
    choice       one way to satisfy a request of a claim: the request itself, or one of its
                 alternatives (firstAvailable)
    query        the CEL selectors of a choice and of its device class
    plan         the claims of a pod that are to be allocated, compiled for all nodes
    search       finds devices for a plan on one node, by trying one after another, as upstream does
    demand       of a plan that only requests numbers of devices: these numbers by query
    verdict      whether a node has devices for a demand (NO, YES), counted without a search;
                 UNKNOWN if only a search decides
    screen       the verdicts on all nodes, with the outcomes of searches (`NodeScreen`)
    in flight    a claim is allocated for an assumed pod that is not bound yet
    own claim    the claim that scheduling makes for the extended resources of a pod that device
                 classes serve (DRAExtendedResource)
    substitute   a pod's facts with made-up claims, which many pods share whose claims differ only
                 in their names

Upstream: staging/src/k8s.io/dynamic-resource-allocation/structured of 1.34.1, its experimental
variant, which the default feature gates select.
"""

from roadstead.devices.allocator import Allocator as Allocator
from roadstead.devices.errors import AllocationAborted as AllocationAborted
from roadstead.devices.errors import AllocationError as AllocationError
from roadstead.devices.errors import AllocatorPanic as AllocatorPanic
from roadstead.devices.gates import DeviceGates as DeviceGates
from roadstead.devices.in_use import DevicesInUse as DevicesInUse
from roadstead.devices.pools import DevicePools as DevicePools
from roadstead.devices.selectors import DeviceSelectorError as DeviceSelectorError
from roadstead.devices.selectors import Selector as Selector
