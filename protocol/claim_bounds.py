"""A bound of the API server on claims of devices, for manifests, the binder and the invariants.

Not in `protocol.objects`, whose import loads pydantic, which a run without manifests does not need.
"""

from __future__ import annotations

from typing import Final

CLAIM_MAX_CONSUMERS: Final = 256
"""Maximum number of pods for which a claim is reserved at one time (status.reservedFor)."""
