"""The scheduling cycle: pods are decided in batches over one node table."""
