"""Scenarios of the fleet lab: schema, reader, reference page and examples."""
