"""Which truth a claim about a simulated patient is to be compared with.

The simulated cohort knows two outcomes of a decision: the SOFA score as it is scored, and the score of the
organs alone, without the points that a vasopressor scores because it is given. A decision claims one of them,
or something else, such as a weighted sum of vitals. The return without changes tells them apart: it is
computed from the observed stay, and so equals that of the matching truth exactly.

Source: ours.
"""

import math
from collections.abc import Mapping

SCORES = {"true": "SOFA", "true_organs": "organ SOFA"}


def counterpart(observed: object, score: Mapping[str, object]) -> str | None:
    """The name of the truth of a claim, a key of `SCORES`; None if there is none.

    Args:
        observed: The claimed return without changes; None or NaN if it is unknown.
        score: The true outcomes, such as those of `SepsisSimulated.score`.
    """
    for name in SCORES:
        true = score.get(f"{name}_observed")
        if (
            isinstance(observed, int | float)
            and isinstance(true, int | float)
            and math.isclose(observed, true, rel_tol=1e-6, abs_tol=1e-6)
        ):
            return name
    return None
