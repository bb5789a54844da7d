"""An independent look at what was committed: one journal in, violations of I1-I12 out.

    world.py      the cluster as the records so far describe it
    node_rules.py what one node must allow: resources, ports, taints, affinity (I1, I2)
    spread.py     hard topology spread (I2)
    affinity.py   required affinity and anti-affinity of pods, in both directions (I2)
    storage.py, volume_limits.py    volumes that are bound: affinity, zone, limits (I1, I2)
    claim_binding.py                claims that are bound together with a pod (I2)
    lives.py      pods, tokens and owners over the whole journal (I3, I4, I5, I6, I8)
    evictions.py  who may drive whom out (I2), and budgets
    order.py      pods that overtake their like (I11)
    checker.py    walks the records in commit order

Written to be obvious, not fast, and from the rules, not from the plugins: it shares nothing with
what decides but the facts of pods and nodes. What is checked where, and what is not:
`docs/invariants.md`.
"""
