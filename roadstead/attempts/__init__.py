"""Attempts: the state machine of each leased pod, from its decision to its bind."""
