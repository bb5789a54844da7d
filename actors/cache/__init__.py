"""The cache actor: pods on nodes, assumed and confirmed, and the stream of changes of them."""
