"""Generated fleets, trace importers and the trace format."""
