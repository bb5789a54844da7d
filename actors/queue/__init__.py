"""The queue actor: waiting pods, leases, and cluster events that may help waiting pods."""
