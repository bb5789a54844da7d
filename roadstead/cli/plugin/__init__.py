"""`roadstead plugin`: writing, testing and listing the user's plugins."""
