"""The inputs of a run, read from manifests or a trace."""
