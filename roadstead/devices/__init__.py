"""The structured allocator of devices: which devices of a node satisfy the claims of a pod.

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
