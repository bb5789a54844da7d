"""The fleet lab: a fleet that is played in virtual time."""
