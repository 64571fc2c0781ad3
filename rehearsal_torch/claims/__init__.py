"""Everything that is said about a chosen action: rules in one list, and models that judge it.

A search chooses an action. Whether it is better than changing nothing, what it costs, whether observations
are near, whether the graph and its rivals let it have an effect, what rows that did not choose it say, and
what hidden cause would overturn it, is said by annotators `(context, decisions) -> decisions`
(`claims.abstention_rules`).
"""
