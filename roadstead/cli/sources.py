"""Reading of the source that the flags name."""

from __future__ import annotations

from roadstead.cli.options import SourceOptions
from roadstead.inputs.loaded import Loaded, load_trace


def load(source: SourceOptions, *, with_digests: bool) -> Loaded:
    """Read the trace or the manifests. Raises InputError."""
    if source.trace is not None:
        return load_trace(
            source.trace,
            with_digests=with_digests,
            gpus_are_devices=source.trace_gpus == "devices",
        )
    from roadstead.inputs.manifest_inputs import load_manifests

    return load_manifests(
        source.cluster,
        source.pods,
        with_digests=with_digests,
        is_strict=source.strict,
        reschedules_lost=source.lost_nodes == "reschedule",
    )
