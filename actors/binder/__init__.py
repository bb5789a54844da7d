"""The binder actor: the one writer, its journal, and what it takes over from one."""
