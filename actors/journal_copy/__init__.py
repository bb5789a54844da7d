"""The actor with the copy of the journal: it receives messages for the core `CopyReceiver`."""
