"""The worker actor: holds nodes of some zones and answers about them."""
