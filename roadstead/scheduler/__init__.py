"""One scheduler without I/O: it leases pods, decides them, and yields requests for what follows.

    lease ─► next batch ─► SchedulingCycle ─► AttemptsCore ─► commands ─► queue, cache, binder

`Scheduler.step` is a generator of requests (needs, `needs.py`), which a driver answers:
`actors/scheduler/driver.py` over actors, `roadstead/local/run.py` in one process.
"""
