"""Runs in one process without actors, and the paths on which decisions are compared.

A *path* is one way to the same decisions: pod by pod or in batches, by the plugins (the reference
path) or by the kernel, with workers or without.
"""
