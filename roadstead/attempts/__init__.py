"""Attempts: the state machine of each leased pod, from its decision to its bind.

`core.py` draws the states. The cache assumes a placed pod; then Reserve and Permit run; the pod
waits if a Permit plugin returned Wait; then PreBind and Bind run, and the binder commits the bind.
The core sends nothing: its methods return commands (`commands.py`) for queue, cache and binder.
Forget ends an assumption at the cache, Confirm makes it final.
"""
