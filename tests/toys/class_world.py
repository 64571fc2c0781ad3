"""A world of classes whose truth is enumerated: a treatment of three, a status of three, a binary context.

    severe    0 or 1
    treatment A, B, C, chosen more often by some contexts
    status    well, mild, ill, by severe and treatment as in `CHANCES`

B is best where the case is not severe, C where it is: no order of the treatments has its best level at one
end in both, and the second best differs as well.
"""

import numpy as np
import pandas as pd

TREATMENTS, STATUS = ("A", "B", "C"), ("well", "mild", "ill")
CHOSEN = {0: (0.5, 0.3, 0.2), 1: (0.25, 0.35, 0.4)}
CHANCES = {
    (0, "A"): (0.30, 0.20, 0.50),
    (0, "B"): (0.70, 0.15, 0.15),
    (0, "C"): (0.20, 0.25, 0.55),
    (1, "A"): (0.25, 0.30, 0.45),
    (1, "B"): (0.10, 0.15, 0.75),
    (1, "C"): (0.55, 0.30, 0.15),
}


def rows(count, seed=0):
    """`count` rows of the world."""
    random = np.random.default_rng(seed)
    severe = random.integers(0, 2, count)
    treatment = [random.choice(TREATMENTS, p=CHOSEN[each]) for each in severe]
    status = [random.choice(STATUS, p=CHANCES[pair]) for pair in zip(severe, treatment, strict=True)]
    return pd.DataFrame({"severe": severe, "treatment": treatment, "status": status})


def truth(severe, treatment, desired):
    """P(status in desired | severe, do(treatment))."""
    return sum(CHANCES[severe, treatment][STATUS.index(each)] for each in desired)


def usual(severe, desired):
    """P(status in desired | severe)."""
    chances = zip(TREATMENTS, CHOSEN[severe], strict=True)
    return sum(share * truth(severe, each, desired) for each, share in chances)
