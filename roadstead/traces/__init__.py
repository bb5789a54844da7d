"""Import of published traces, and tools that change traces; all with bounded memory.

Each format is a module with a reader: a class whose `read` adds the rows of its files, which are
lines of a table or objects of JSON, to a `TraceSink`. For a row without a pod or node it raises
LeftOut with the reason, which the sink counts. Equal pods are one class, which has a number
(`TraceSink.pod_class`). The sink has nodes and classes in memory; pods, and other data that must be
sorted or searched, are rows of its `Spool`, a temporary database on disk. Then `importing` writes
the trace file, with the pods sorted by arrival.

The tools read one trace file in chunks and write another. A chunk is a `TracePods`: up to 65,536
pods as NumPy columns.

The columns are those of `roadstead.fleet.trace`. A pod's *creation* is its arrival; its *duration*
is how long it runs once it has started; its *deletion*, also called its recorded end, is when it
ended in the cluster of the trace. NEVER_MS (-1) stands for none. Amounts of cpu are milli-CPU.
"""
