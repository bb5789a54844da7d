"""Current state of claims and volumes, and the bindings that placements cause.

As upstream, the claims of a pod are bound on a node when the pod is *assumed* there. The binding is
undone if the pod is *forgotten*, and permanent when its bind is committed.
"""

from roadstead.storage.assumed_claims import AssumedClaims as AssumedClaims
from roadstead.storage.assumed_claims import Reserved as Reserved
from roadstead.storage.binding import Binding as Binding
from roadstead.storage.binding import bindings_on as bindings_on
from roadstead.storage.binding_profiles import BindingProfiles as BindingProfiles
from roadstead.storage.claims import ClaimError as ClaimError
from roadstead.storage.claims import claims_of as claims_of
from roadstead.storage.state import StorageChange as StorageChange
from roadstead.storage.state import StorageState as StorageState
