"""Extension points, registry, profile runtime, CycleState, signatures."""
