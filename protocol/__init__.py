"""Data at the boundaries: API objects, quantities, messages, codec, Status, errors."""
