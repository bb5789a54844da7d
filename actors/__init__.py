"""Actors around the synchronous cores, their messages, and the runtimes that run them."""
