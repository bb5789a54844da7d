"""The check of every node of a Ray cluster, without a run."""

from __future__ import annotations

import asyncio
import os

import ray

from roadstead.actors.runtime.ray_checks import check_nodes
from roadstead.actors.runtime.ray_cluster import alive_nodes
from roadstead.actors.runtime.ray_session import RaySession, initialized_address, open_session
from roadstead.actors.runtime.ray_target import target_of
from roadstead.config.settings import Settings
from roadstead.protocol.errors import InputError
from roadstead.report.ray_nodes import CheckedNode


async def check_cluster(settings: Settings) -> tuple[str, tuple[CheckedNode, ...]]:
    """Join the cluster of the settings, check each of its nodes, and leave it.

    Returns the address of its head, and the nodes by name. InputError if the settings name none, or
    a journal's folder that does not exist here.
    """
    journal = None if settings.journal is None else settings.journal.resolve()
    if journal is not None and not journal.is_dir():
        # A run would make it here; then this node alone would have it, whatever the path.
        raise InputError(
            "must be an existing folder: make it where the journal shall be",
            source="--journal",
            value=str(settings.journal),
        )
    await asyncio.to_thread(RaySession.await_end, settings.deadlines.start_s)
    target = target_of(settings.ray, initialized=initialized_address(), environ=os.environ)
    if target.is_local:
        raise InputError(
            "must name a cluster: HOST:PORT of its head, or auto on one of its nodes",
            source="--ray-address",
            value=settings.ray.address or "local",
        )
    session = open_session(target, settings.ray, settings.deadlines.start_s, "roadstead-check")
    try:
        address = ray.get_runtime_context().gcs_address
        nodes = await asyncio.to_thread(alive_nodes)
        reports = await check_nodes(nodes, journal)
    finally:
        session.leave()
    has_folder = journal is not None
    return address, tuple(each.checked(has_folder=has_folder) for each in reports)
