"""The node table: columns, interning, deltas."""
