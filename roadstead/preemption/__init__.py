"""Preemption without I/O: the dry run and the choice of a node."""
