"""The binder actor: a shell around `roadstead.binder.binder.Binder`, and the order of batches."""
