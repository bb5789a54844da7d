"""A fleet that is played in virtual time."""
