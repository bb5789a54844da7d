"""Requests that a process answers for any of its actors: profile, usage, load of the kernel."""

from __future__ import annotations

import asyncio
import logging

from roadstead.actors.interface import NOTHING
from roadstead.actors.logs import ROOT
from roadstead.actors.messages.process import PROFILE, USAGE, ProfileRequest
from roadstead.actors.runtime.sampling import handle_profile_request
from roadstead.bench.process_usage import ProcessUsage
from roadstead.protocol.codec import from_wire, to_wire


async def answer_process_call(kind: str, body: object) -> object:
    """Return the reply to one of `PROCESS_CALLS`."""
    if kind == PROFILE.name:
        return to_wire(handle_profile_request(from_wire(ProfileRequest, body)))
    if kind == USAGE.name:
        return to_wire(_own_usage())
    await asyncio.to_thread(_load_kernel)
    return to_wire(NOTHING)


def _own_usage() -> ProcessUsage:
    # Only a bench asks for it.
    from roadstead.bench.machine import own_usage

    return own_usage()


def _load_kernel() -> None:
    from roadstead.kernel.compiled_code import load

    logger = logging.getLogger(f"{ROOT}.kernel")
    try:
        load(logger.info)
    except Exception:
        # Without the kernel the plugins decide; KernelLoader warns again when it is needed.
        logger.warning("the kernel cannot be loaded", exc_info=True)
