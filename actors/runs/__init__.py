"""Runs on actors: everything that the process of the command does, from a plan to an outcome.

launch.py        executes runs; on_demand.py imports it only when a run needs actors
client.py        a run whose inputs are all known at the start
session.py       a run in which nodes and pods change step by step
journals.py      the folder of the journal, before and after a run
outcomes.py      the outcome as a file next to the journal; scores.py adds scores to it
explainer.py     explanations of pods after a run
bench_run.py     benchmarks, with process_times.py, profiling.py and status_changes.py
lab_run.py       runs of the lab (`roadstead stress`)
cluster_check.py the check of a Ray cluster's nodes
event_loops.py   coroutines from synchronous code
"""
