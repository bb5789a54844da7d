"""The scheduler actor: it leases pods, decides them on its own node table, assumes and binds.

The core `Scheduler` yields needs (`roadstead.scheduler.needs`, `roadstead.cycle.needs`), and its
`Performer` carries out the commands that follow from answers. Here `Driver` answers the needs.

Settings that matter here. `mode`: exact for one scheduler, which decides as kube-scheduler does;
shared for several on all nodes; partitioned for several that first use their own partitions of the
nodes. `staleness_s`: the age up to which a scheduler decides on the state that it has read.
`decision_time`: a simulated latency between reading the state and deciding. `conflicts: version`:
the binder also refuses a pod whose node changed after the scheduler read it.
"""
