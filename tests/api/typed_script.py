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
fits: roadstead.FitResult = cluster.fit("web=2", "db", total=True, progress=lambda each: None)
zones: dict[str, int] = fits.zones
grown: roadstead.GrowResult = cluster.grow("shapes.yaml", max_runs=10)
shrunk: roadstead.ShrinkResult = cluster.shrink(zone="a", selector="pool=x")
drained: roadstead.DrainResult = cluster.drain("n1", force=True, delete_emptydir_data=True)
targets: dict[str, int] = drained.targets
played: roadstead.SimulationResult = roadstead.load_run("run")
life: roadstead.PodLife = played.why("web", at="3h", tables_only=False)
reasons: list[str] = [each.message for each in life.attempts]
found: dict[str, tuple[int, list[str]]] = {
    name: (each.pods, [one.rule for one in each.violations])
    for name, each in played.check().items()
}
swept: roadstead.SweepResult = roadstead.sweep("s.yaml", {"config": ["default", "binpack"]})
medians: list[float] = [each.metrics["pending"].median for each in swept.points]
compared: roadstead.Comparison = roadstead.compare(played, swept)
verdict: str = compared["pending"].verdict
roadstead.sweep("s.yaml", jobs="2")  # type: ignore[arg-type]
cluster.fit(replicas=3)  # type: ignore[call-arg]
tasks = roadstead.Workload.arrivals("task.yaml", poisson={"per_hour": 60}, duration="20m")
api: roadstead.Workload = roadstead.Workload.deployment({"spec": {}}, replicas=3, max_surge="10%")
nodes: roadstead.Fleet = roadstead.Fleet.generate(200, shape="gpu-8xA100", zones=4)
scenario = roadstead.Scenario(
    "typed", fleet=[nodes, {"trace": "openb.trace"}], workload=[tasks, api], horizon="7d", seeds=5
)
changed: roadstead.Scenario = scenario.with_values({"seeds": [1, 2], "fleet": [nodes]})
per_hour: list[float] = [each.per_hour for each in changed.check().sources]
roadstead.simulate(changed)
roadstead.compare("default", "binpack", scenario=roadstead.Scenario.load("s.yaml"))
roadstead.Fleet.generate(nodes="200")  # type: ignore[arg-type]
roadstead.Scenario("x", fleet=[nodes], horizons="7d")  # type: ignore[call-arg]
