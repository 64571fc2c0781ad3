"""The largest graphs that are built from files: 1,000 variables and 20,000 edges.

Source: ours.
"""

VARIABLES = 1000
EDGES = 20_000


def check_size(variables: int, edges: int) -> None:
    """Refuses graphs that are too large to build.

    Args:
        variables: The number of variables.
        edges: The number of edges; a bi-directional clique of n variables counts as n (n - 1) / 2.

    Raises:
        ValueError: if there are more than 1,000 variables or 20,000 edges.
    """
    for count, largest, kind in ((variables, VARIABLES, "variables"), (edges, EDGES, "edges")):
        if count > largest:
            raise ValueError(
                f"expected at most {largest} {kind}; got {count}: is it the graph that was meant?"
            )
