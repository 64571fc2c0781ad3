"""A check of a task's desired region against the observations.

If no observation lies in the region, or every one does, the outcome to be predicted is a constant: a method
then gives every action the same probability, and the comparison with no action says nothing. The region is
often written in other units than the table, or with a bound on the wrong side.
"""

import torch
from torch import Tensor

from rehearsal_torch.data.table import Table
from rehearsal_torch.spaces.polytope import Polytope

# Sides of the region that no row is on, of which a sentence names at most these.
MOST = 3
REMEDY = "check its bounds and their units"


def one_sided(table: Table, region: Polytope) -> str:
    """One sentence if none of the observations, or every one, lies in the region; empty otherwise.

    Args:
        table: The observations, with the outcomes' columns.
        region: The desired region, in the units of the table.
    """
    values = table.columns(region.names).to(torch.float64)
    inside = region.contains(values)
    if bool(inside.all()):
        return (
            f"every one of the {len(table)} rows lies in the desired region: the rows do not show what would "
            f"leave it; {REMEDY}"
        )
    if bool(inside.any()):
        return ""
    unmet = (~(region.slack(values) >= 0).any(0)).nonzero()[:, 0].tolist()
    sides = [_side(region, face, values) for face in unmet[:MOST]]
    more = [f"{len(unmet) - MOST} more bounds are met by no row"] if len(unmet) > MOST else []
    why = "; ".join([*sides, *more]) or "each of its bounds is met by some row, all of them by none"
    return (
        f"none of the {len(table)} rows lies in the desired region: {why}: the rows do not show what leads "
        f"there; {REMEDY}"
    )


def _side(region: Polytope, face: int, values: Tensor) -> str:
    """What a face asks for that no row has, and how close the rows (n, |Y|) come."""
    normal, offset = region.normals[face], float(region.offsets[face])
    used = normal.nonzero()[:, 0].tolist()
    if len(used) == 1:
        (place,), slope = used, float(normal[used[0]])
        name, column, bound = region.names[place], values[:, place], f"{offset / slope + 0.0:.6g}"
        if slope < 0:
            return f"{name} is at most {float(column.max()):.6g}, and the region asks for at least {bound}"
        return f"{name} is at least {float(column.min()):.6g}, and the region asks for at most {bound}"
    total = " + ".join(f"{float(normal[place]):.6g} {region.names[place]}" for place in used)
    least = float((values @ normal).min())
    return f"{total} is at least {least:.6g}, and the region asks for at most {offset:.6g}".replace(
        "+ -", "- "
    )
