"""Compilation of scenarios: from files, manifests and traces to what the simulator runs."""
