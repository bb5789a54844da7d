"""Local: pods decided in one process, without actors, on each of the paths that a run may take."""
