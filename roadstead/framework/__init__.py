"""Extension points over tables, profiles, and the evaluation of a pod class with its plugins.

Words used in all modules: a plugin answers for all rows of a node table in one call (`plugin`), and
equal pods form a *class* (`PodClass`), which is evaluated once. A *code* of a row is 0 if it passes
Filter, or the number of the status that refuses it. A *dry run* is the search of preemption for
nodes on which the pod would fit without some pods of lower priority, the *victims*; such a node
with its victims is a *candidate*. Gangs are pod groups (`members`).
"""
