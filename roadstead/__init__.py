"""Roadstead: a Kubernetes-compatible scheduler that runs as actors on Ray."""

__version__ = "0.1.0"
