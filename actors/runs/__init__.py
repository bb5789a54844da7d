"""What a run is driven by: from the launcher and its client to benchmarks and the conflict lab."""
