"""Preemption, pure: the dry run on one shard's rows, the merge, and the choice of a node."""
