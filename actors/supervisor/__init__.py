"""The supervisor: starts and watches actors, replaces lost ones, and restores their state."""
