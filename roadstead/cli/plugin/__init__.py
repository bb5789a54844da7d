"""`roadstead plugin`: writing, testing and listing plugins of a user."""
