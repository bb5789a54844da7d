"""Benchmarks: workloads in the format of kube-scheduler's scheduler_perf, and their results.

A test case is a list of ops, which are operations such as createPods, and its workloads are values
of the ops' parameters. Each op becomes a step of a script, or an object that exists from the start.
A series is many similar nodes or pods. A churn creates (and deletes) objects at an interval during
the measurement. A steady state submits some pods, deletes them when they are bound, and so on.

file ──read_cases──► TestCase ──unroll──► ops ──build_script──► Script ──actors──► Measurement
                                                                                └──► metrics
"""
