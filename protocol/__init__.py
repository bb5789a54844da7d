"""Data at the boundaries: API objects, quantities, messages, codec, Status, errors.

*Plain data* is what JSON has: dicts with string keys, lists, strings, numbers, booleans and null;
in messages also bytes. The *wire format* writes messages between actors, and the facts in files, as
plain data in msgpack.
"""
