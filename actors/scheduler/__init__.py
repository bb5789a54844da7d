"""The scheduler actor: leases pods, decides them on the nodes that it holds, assumes and binds."""
