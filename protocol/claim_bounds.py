"""A bound of the API server on claims of devices, for manifests, the binder and the checker.

It is not with the manifests' models: whoever imports these loads pydantic.
"""

from __future__ import annotations

from typing import Final

CLAIM_MAX_CONSUMERS: Final = 256
"""Maximum number of pods for which a claim is reserved at one time (status.reservedFor)."""
