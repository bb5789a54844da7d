"""One scheduler without I/O: it leases pods, decides them, and yields requests for what follows.

    lease ─► next batch ─► SchedulingCycle ─► AttemptsCore ─► commands ─► queue, cache, binder

A job is the pods of one gang or one controller, or a pod without either: with
`transaction: all-or-nothing`, the binder commits all binds of a job or none.

`Scheduler.step` is a generator of requests (needs, `needs.py`), which a driver answers:
`actors/scheduler/driver.py` over actors, `roadstead/local/run.py` in one process.
"""
