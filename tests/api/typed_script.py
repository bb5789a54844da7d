"""A user's script that mypy checks. An unnecessary `ignore` would be an error."""

import roadstead


def free_zones(paths: list[str]) -> dict[str, str]:
    cluster = roadstead.load(paths, trace=None, lost_nodes="reschedule")
    result = cluster.schedule(preset="binpack", seed=1, progress=lambda each: print(each.phase))
    node_of: dict[str, str] = {each.pod: each.node for each in result.placements}
    reasons: list[tuple[str, int]] = [pair for pod in result.pending for pair in pod.reasons]
    workloads: set[str] = {each.workload for each in result.pods}
    best: tuple[str, ...] = cluster.explain("web").best
    states = [each.state for each in cluster.explain_pending().sections]
    print(reasons, workloads, best, states, cluster.notes, result.to_arrow("nodes").num_rows)
    return node_of


def refused(error: roadstead.InputError) -> tuple[str, str, str, str, str]:
    return error.source, error.obj, error.field, error.value, error.rule


cluster: roadstead.Cluster = roadstead.load("nodes.yaml")
result: roadstead.Result = cluster.schedule(config=roadstead.load_config())
count: str = len(result.pending)  # type: ignore[assignment]
cluster.schedule(runtime="dask")  # type: ignore[arg-type]
result.to_arrow("nope")  # type: ignore[arg-type]
print(cluster.nope)  # type: ignore[attr-defined]
