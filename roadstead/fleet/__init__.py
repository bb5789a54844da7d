"""Generated fleets, trace importers and the trace format.

A *trace* is nodes, and pods with the times at which they arrive and end. *openb* is a published
trace of a GPU cluster (`openb.py`). Nodes and pods with equal facts are one *class*, which is
stored once; a *code* or class number is its index.
"""
