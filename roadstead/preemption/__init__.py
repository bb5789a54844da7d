"""Preemption, pure: the dry run and the choice of a node."""
