"""One module per in-tree plugin."""
