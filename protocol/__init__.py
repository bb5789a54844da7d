"""What crosses a boundary: API objects, quantities, messages, codec, Status, errors."""
