"""Compilation of scenarios: files, manifests and traces to a plan that can be played."""
