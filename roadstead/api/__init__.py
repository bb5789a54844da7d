"""The Python API, and the steps of a run that it shares with the command line."""
