"""The worker actor: it has every Nth node, and evaluates these for the schedulers."""
