"""The cache actor: assumed and confirmed pods on nodes, and the stream of their changes.

Followers are the schedulers and workers, which apply the changes. A follower is filled if it has
received the whole state once: then it receives each later change.
"""
