"""Attempts: what becomes of each pod that a scheduler leased, from its decision to its bind."""
