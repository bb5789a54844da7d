"""Runs on actors: launcher, client, sessions, journals, benchmarks and the conflict lab."""
