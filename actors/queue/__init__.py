"""The queue actor: pods that wait, leases, and what happened in the cluster that may help them."""
