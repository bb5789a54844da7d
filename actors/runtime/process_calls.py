"""What is asked of a process, whatever the actor that is told: profiles, and to be warm."""

from __future__ import annotations

import asyncio
import logging

from roadstead.actors.logs import ROOT
from roadstead.actors.messages.process import PROFILE, ProfileAsk
from roadstead.actors.runtime.sampling import answer
from roadstead.actors.seam import NOTHING
from roadstead.protocol.codec import from_wire, to_wire


async def answered(kind: str, body: object) -> object:
    """The reply to a call of one of these kinds."""
    if kind == PROFILE.name:
        return to_wire(answer(from_wire(ProfileAsk, body)))
    await asyncio.to_thread(_load_kernel)
    return to_wire(NOTHING)


def _load_kernel() -> None:
    from roadstead.kernel.start import load

    logger = logging.getLogger(f"{ROOT}.kernel")
    try:
        load(logger.info)
    except Exception:
        # Whoever wants to decide with it says so; the reference decides.
        logger.warning("the kernel cannot be loaded", exc_info=True)
