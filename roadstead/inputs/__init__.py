"""What a run works on, read from manifests or a trace."""
