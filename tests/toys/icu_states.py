"""A file of numbers as ICU-Sepsis has it, with a few states."""

import numpy as np

LIVE = 6


def written(folder, **other):
    """The path of a file with LIVE states, both ends and what follows; `other` arrays, None for none."""
    draw, size = np.random.default_rng(0), LIVE + 3
    rows, policy = np.zeros((size, 25, size)), np.zeros((size, 25))
    rows[:LIVE, :, : LIVE + 2] = draw.dirichlet(np.full(LIVE + 2, 0.6), (LIVE, 25))
    rows[:LIVE, :, LIVE : LIVE + 2] *= 0.15
    rows[:LIVE] /= rows[:LIVE].sum(-1, keepdims=True)
    rows[LIVE:, :, -1] = 1
    policy[:LIVE] = draw.dirichlet(np.full(25, 0.6), LIVE)
    first = np.r_[np.full(LIVE, 1 / LIVE), 0, 0, 0]
    scores = np.r_[3 * draw.permutation(LIVE) + 1.5, 0, 0, 0]
    parts = {"tx_mat": rows, "d_0": first, "expert_policy": policy, "sofa_scores": scores} | other
    np.savez(folder / "dynamics.npz", **{name: part for name, part in parts.items() if part is not None})
    return str(folder / "dynamics.npz")
