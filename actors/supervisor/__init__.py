"""The supervisor: starts actors, notices which are gone, and fills those that take their place."""
