"""Recorded decisions of the real kube-scheduler, replayed and compared field by field.

A recording is one file of a suite (a kind of recordings), and a case is its cluster as facts. A
path is a way to decide (`roadstead.local.decision_paths`): by the plugins alone, in batches or by
workers, with or without the kernel. An entry is the recorded decision on one pod, on the recorded
cluster; a step is that of a sequence, in which each decision builds on those before it. `ours` is
Roadstead's answer in the form of the recording, `theirs` the recorded one.
"""
