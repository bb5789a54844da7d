"""The scheduling cycle: shards answer for classes, a batch is decided over their answers."""
