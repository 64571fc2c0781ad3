"""What `care` says of its decisions, in plain NumPy: all cases and all drawn models in one array.

Of one outcome, y = m + e' z + noise in the fitted model and in R models drawn from its posterior, to lie in
[l, u], the action of each set has the mean nearest to (l + u) / 2, on the line between the corners of the box
with the lowest and the highest mean. Said is

    claim      the mean of P(l <= y <= u) over the drawn models; the set with the largest one is taken
    interval   normal on the logistic scale, from the same draws
    baseline   the claim without an alteration

Models are those of the package, so that both sides say the same. Left out are checks of the cases, the
support of the rows, what would overturn a decision, and its record.

Source: Qin et al. (2025b), Alg. 2; the claims are those of `objectives.gaussian_success`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import erfc, expit, logit

QUANTILE = 1.959964


@dataclass(frozen=True)
class Affine:
    """y = context x + action z + constant + noise of a standard deviation, for R models: (R, |X|), (R, k),
    (R,), (R,).
    """

    context: np.ndarray
    action: np.ndarray
    constant: np.ndarray
    scale: np.ndarray

    def chances(self, contexts: np.ndarray, actions: np.ndarray, desired: tuple[float, float]) -> np.ndarray:
        """P(l <= y <= u), contexts (B, |X|) and actions (B, k) -> (R, B)."""
        mean = self.context @ contexts.T + self.action @ actions.T + self.constant[:, None]
        low, high = ((end - mean) / (np.sqrt(2) * self.scale[:, None]) for end in desired)
        right = low + high > 0
        low, high = np.where(right, high, -low), np.where(right, low, -high)
        return 0.5 * (erfc(high) - erfc(low))


@dataclass(frozen=True)
class PlainClaims:
    """The decisions of a fit, of the models of no set and of each set, fitted and drawn."""

    models: Sequence[tuple[Affine, Affine]]
    boxes: Sequence[tuple[np.ndarray, np.ndarray]]
    desired: tuple[float, float]

    def __call__(self, contexts: np.ndarray) -> dict[str, np.ndarray]:
        """Which set, its claim with both ends of its interval, and the baseline, (B,) each."""
        (_, nothing), *models = self.models
        drawn = []
        for (fitted, each), (lower, upper) in zip(models, self.boxes, strict=True):
            effect = fitted.action[0]
            lowest, highest = np.where(effect > 0, lower, upper), np.where(effect > 0, upper, lower)
            base = contexts @ fitted.context[0] + fitted.constant[0]
            least, span = base + lowest @ effect, (highest - lowest) @ effect
            share = (
                np.clip((sum(self.desired) / 2 - least) / span, 0.0, 1.0) if span else np.full_like(base, 0.5)
            )
            drawn.append(each.chances(contexts, lowest + share[:, None] * (highest - lowest), self.desired))
        points = np.stack([each.mean(0) for each in drawn])
        which, rows = points.argmax(0), np.arange(len(contexts))
        taken = np.stack(drawn)[which, :, rows].T
        scale = logit(np.clip(taken, 1e-9, 1 - 1e-9))
        middle, half = scale.mean(0), QUANTILE * scale.std(0, ddof=1)
        claim = points[which, rows]
        before = nothing.chances(contexts, np.zeros((len(contexts), 0)), self.desired).mean(0)
        ends = np.minimum(expit(middle - half), claim), np.maximum(expit(middle + half), claim)
        return {"which": which, "claim": claim, "lower": ends[0], "upper": ends[1], "baseline": before}
