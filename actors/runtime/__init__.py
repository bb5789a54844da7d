"""Runtimes of actors: in this process, on Ray, or simulated; from an envelope to its handler."""
