"""Checks and claims of a chosen action: rules in one list, and models that judge it.

A search chooses an action. Annotators `(context, decisions) -> decisions` (`claims.abstention_rules`) add its
gain over changing nothing, its cost, its distance to the observations, its effect by the graph and its
rivals, the estimate by rows that did not choose it, and the hidden cause that would overturn it.
"""
