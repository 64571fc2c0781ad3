"""Which truth a claim about a simulated patient is to be compared with.

The simulated cohort knows two outcomes of a decision: the SOFA score as it is scored, and the score of the
organs alone, without the points that a vasopressor scores because it is given. A decision claims one of them,
or something else, such as a weighted sum of vitals. The return without changes tells what is claimed, since
it is computed from the observed stay and so equals that of the matching truth exactly. Where no vasopressor
was given both truths begin alike, and the record's returns with and without the points of doses tell them
apart.
"""

import math
from collections.abc import Mapping
from typing import Any

SCORES = {"true": "SOFA", "true_organs": "organ SOFA"}
# The related return of a record (objectives.step_score) for each truth.
_RELATED = {"true_organs": "without doses", "true": "with doses"}


def counterpart(trajectory: Mapping[str, Any], score: Mapping[str, object]) -> str | None:
    """The name of the truth of a claim, a key of `SCORES`; None if there is none.

    Args:
        trajectory: The record of a decision's trajectory, with ``observed`` and ``value`` and, for a score
            with doses, ``related``.
        score: The true outcomes, such as those of `SepsisSimulated.score`.
    """
    matching = [name for name in SCORES if _equal(trajectory.get("observed"), score.get(f"{name}_observed"))]
    related = trajectory.get("related") or {}
    for name, own in _RELATED.items():
        if (
            name in matching
            and own in related
            and all(_equal(trajectory.get(end), related[own].get(end)) for end in ("observed", "value"))
        ):
            return name
    return matching[0] if matching else None


def _equal(one: object, other: object) -> bool:
    return (
        isinstance(one, int | float)
        and isinstance(other, int | float)
        and math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-6)
    )
