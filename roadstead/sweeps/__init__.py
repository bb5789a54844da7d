"""Sweeps: many independent tasks, run in this process, in others, or on all nodes of a Ray cluster.

`SweepCore` decides which task is started next; a driver (`drivers.py`) runs it and reports its end.
`carry_out` connects both. `ResultsFile` stores each result immediately, so that a stopped sweep can
be continued. A task is plain data for a function that `functions.py` names.

A result depends on the data of its task alone: not on where it ran, when, or how often. A task is
*lost* when the process or the node that ran it is gone; then it is started again.

States and events, as `scripts/diagrams.py` draws them from `sweeps.tasks.TABLE`:

    WAITING ── start ──► RUNNING   ── restore ──► DONE   ── stop ──► STOPPED
    RUNNING ── lose ──► LOST   ── finish ──► DONE   ── fail ──► FAILED   ── stop ──► STOPPED
    LOST    ── start ──► RUNNING   ── give_up ──► FAILED   ── stop ──► STOPPED
    DONE    (no event is allowed)
    FAILED  (no event is allowed)
    STOPPED (no event is allowed)
"""
