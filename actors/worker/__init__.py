"""The worker actor: it has every Nth node, and evaluates these for the schedulers.

`TableFollower` is the part that schedulers and workers share: a node table that the cache's change
stream updates. To score a class is to call users' plugins for it on all rows; to rank it is to list
the best rows with their total scores.
"""
