"""The worker actor: it keeps every Nth node, and evaluates these for the schedulers."""
