"""The scheduler actor: it leases pods, decides them on its own node table, assumes and binds.

The core `Scheduler` yields needs (`roadstead.scheduler.needs`, `roadstead.cycle.needs`), and its
`Performer` carries out the commands that follow from answers. Here `Driver` answers the needs.
"""
