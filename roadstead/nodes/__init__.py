"""The node table: one row per node, in columns, with the pods on each node by class."""
