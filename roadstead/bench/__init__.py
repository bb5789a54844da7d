"""Benchmarks: workloads in the format of kube-scheduler's scheduler_perf, and their results.

file ──read_cases──► TestCase ──unroll──► ops ──build_script──► Script ──actors──► Measurement
                                                                                └──► metrics
"""
