"""Local: runs without actors in one process, and pods decided on each path that a run may take."""
