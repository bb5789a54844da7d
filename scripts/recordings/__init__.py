"""Recorded decisions of the real kube-scheduler, replayed and compared field by field."""
