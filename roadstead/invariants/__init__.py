"""An independent checker of commits: reads a journal, reports violations of the invariants.

The invariants that it names (the others are in `docs/invariants.md`):

    I1   no commit overfills a node; no device is in two claims
    I2   every hard constraint holds in the order of commits; evictions respect priorities
    I3   a pod is bound at most once and never moves
    I4   an accepted pod is in exactly one place: pending, on its node, or gone
    I5   a pod that ends frees its amounts on the node where it is, and its claims of devices
    I6   nothing is bound under a void token
    I7   record numbers only increase
    I8   a token is of one pod; earlier epochs of a scheduler commit nothing
    I10  gangs are bound all-or-nothing
    I11  pods are leased by priority, then by time

A journal may begin with a snapshot, which replaces earlier records: it has a LOAD for each bound
pod, and lsn 0 for records that are no commits.

Modules:

    world.py      the cluster as the records so far describe it
    node_rules.py rules of single nodes: resources, ports, taints, affinity (I1, I2)
    spread.py     hard topology spread (I2)
    affinity.py   required affinity and anti-affinity of pods, in both directions (I2)
    storage.py, volume_limits.py    volumes that are bound: affinity, zone, limits (I1, I2)
    devices.py                      claims of devices (I1, I2)
    claim_binding.py                claims that are bound together with a pod (I2)
    history.py    pods, tokens and owners over the whole journal (I3, I4, I5, I6, I8)
    evictions.py  which pods may be evicted for which (I2), and budgets
    order.py      pods that overtake equal ones (I11)
    checker.py    applies the records in commit order
    simulated_*.py    similar rules for a simulated run, which has tables in place of a journal

Written to be obvious, not fast, and from the rules, not from the plugins: it shares facts, journal,
CEL and protocol, and imports nothing that decides. `docs/invariants.md` lists the checks and their
places, and the gaps.
"""
