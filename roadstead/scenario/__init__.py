"""Compilation of scenarios: from files, manifests and traces to what the simulator runs.

A scenario file lists *entries*: of the fleet, the workload and the events. `compile.py` turns them
into a `CompiledScenario`, whose parts are plans (`ControllerPlan`, `NodeEventPlan`, …) and *sources
of arrivals*: generators of the pods of one entry of the workload. The parameter `at` is the path of
a key in the scenario file, such as ("fleet", 0, "trace"), for errors; `place` is the same as text,
`fleet[0].trace`.
"""
