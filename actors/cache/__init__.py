"""The cache actor: assumed and confirmed pods on nodes, and the stream of their changes."""
