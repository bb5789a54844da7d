"""Node lifecycle: faults of a scenario, and how a cluster's components change nodes and evict pods.

    faults.py           when a scenario loses, drains, cordons, taints, adds or removes which nodes
    marks.py            cordons and taints of nodes, each until its cause is over
    health.py           nodes that do not answer: the node lifecycle controller
    eviction_rate.py    how fast that controller taints the nodes of a zone
    taint_evictions.py  pods that do not tolerate NoExecute taints: the taint eviction controller
    budgets.py          disruptions allowed by each budget: the disruption controller
    drains.py           cordoned nodes whose pods are evicted: kubectl drain and the Eviction API
    evictions.py        taints, drains and budgets together, as commands
    component.py        `NodeLifecycle`, the component: nodes, and all of the above

The other modules are synchronous cores, which know neither the engine nor its commands.
"""
