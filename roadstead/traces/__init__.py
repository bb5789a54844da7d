"""Import of published traces, and tools that change traces; all with bounded memory.

Each format is a module with a class whose `read` adds its files to a `TraceSink`. `importing` sorts
what the sink collected and writes the trace. The tools read one trace file chunk by chunk and write
another.
"""
