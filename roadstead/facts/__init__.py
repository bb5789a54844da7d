"""Facts of pods and nodes: frozen, interned, compiled once from a validated manifest."""
