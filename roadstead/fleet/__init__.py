"""Generated fleets, trace importers and the run format."""
