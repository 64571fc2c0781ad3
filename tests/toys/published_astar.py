"""A* as in Tsirtsis and Gomez-Rodriguez (2023), with anchors of one's own (``astar_published``)."""

from rehearsal_torch.search.sequences.astar import AStar


def published(anchors=None, **limits):
    return AStar(anchors, pooled=True, exact=False, lookahead=True, batch=1, incumbent=False, **limits)
