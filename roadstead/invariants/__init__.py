"""An independent look at what was committed: one journal in, violations of I1-I12 out.

    world.py      the cluster as the records so far describe it
    node_rules.py what one node must allow: resources, ports, taints, affinity (I1, I2)
    spread.py     hard topology spread (I2)
    affinity.py   required affinity and anti-affinity of pods, in both directions (I2)
    checker.py    walks the records in commit order, and what must hold of their order (I3 … I10)

Written to be obvious, not fast, and from the rules, not from the plugins: it shares nothing with
what decides but the facts of pods and nodes.
"""
