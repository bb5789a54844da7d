"""The actor with the copy of the journal: a shell around `roadstead.journal_copy.CopyReceiver`."""
