"""Local: runs in one process without actors, and decisions on each path that a run may take."""
