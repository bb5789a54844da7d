"""The scheduler actor: it leases pods, decides them on its own node table, assumes and binds."""
