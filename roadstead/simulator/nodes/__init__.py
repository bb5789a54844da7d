"""Node life: faults of a scenario, and what a cluster's components do about nodes and evictions.

    faults.py           when a scenario loses, drains, cordons, taints, adds or removes which nodes
    marks.py            cordons and taints of nodes, each until its cause is over
    health.py           nodes that do not answer: the node lifecycle controller
    eviction_rate.py    how fast that controller taints the nodes of a zone
    taint_evictions.py  pods that do not tolerate NoExecute taints: the taint eviction controller
    budgets.py          disruptions allowed by each budget: the disruption controller
    drains.py           cordoned nodes whose pods are evicted: kubectl drain and the Eviction API
    life.py             `NodeLife`, the component that joins them

The modules below `NodeLife` are synchronous cores: they know neither the engine nor each other.
"""
