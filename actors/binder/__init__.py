"""The binder actor: it receives messages for the core `Binder`, and orders and journals binds."""
