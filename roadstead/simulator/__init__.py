"""Simulator: fleets in virtual time (`roadstead simulate`)."""
