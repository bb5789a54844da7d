"""The scheduling cycle: decides pods in batches over one node table."""
