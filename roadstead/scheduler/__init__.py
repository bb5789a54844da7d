"""One scheduler without I/O: it leases pods, decides them, and has what follows done.

    lease ─► next batch ─► SchedulingCycle ─► AttemptsCore ─► effects ─► queue, cache, binder

`Scheduler.step` is a generator of needs (`needs.py`), which a driver meets:
`actors/scheduler/driver.py` over actors, `roadstead/local/run.py` in one process.
"""
