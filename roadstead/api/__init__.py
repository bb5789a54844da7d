"""The Python API, and the steps of a run that the API and the command line share."""
