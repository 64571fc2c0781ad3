"""Whether outcomes have a slack to regress, or whether success itself is modelled.

The slack of a yes/no outcome holds no more than the indicator of the region, and its noise is not additive.
Success itself is then modelled, P(Y in S | h) = Phi(f(h)) (`estimators.feature_classifier`): with a latent
sum t = f(h) + e, e ~ N(0, 1), an outcome is desired where t >= 0. That is one coordinate with one face, so
that everything that counts desired points of the slack's coordinates counts those of t.

    binary     an outcome takes at most two values: success is modelled
    few        an outcome takes at most 50 values, on average at least five times each (counts, classes,
               marks): the slack and success are both fitted, and the smaller Brier score of two-fold held-out
               predictions decides, of at most 10,000 rows, drawn by the seed; with fewer than 30 desired
               rows (or undesired ones) the slack is kept, which every row shows
    many       the slack is regressed

The region is judged as a whole: where one outcome of several is yes/no, the indicator of all is modelled.

Source: Albert and Chib (1993) (the latent sum); Gneiting and Raftery (2007) (the Brier score); the rule is
ours.
"""

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor

from rehearsal_torch.data.part import Sizes, Solved
from rehearsal_torch.data.tables.row_places import drawn
from rehearsal_torch.estimators.feature_regression import FeatureRegression
from rehearsal_torch.seeding import generator
from rehearsal_torch.surrogates.outcome.face_coordinates import FaceCoordinates
from rehearsal_torch.surrogates.outcome.posterior_success import held_out

Values = Literal["binary", "few", "many"]
BINARY, FEW, REPEATS = 2, 50, 5
FEWEST_ROWS, SCORED_ROWS = 30, 10_000


def latent_face() -> FaceCoordinates:
    """The region {t : t >= 0} of one coordinate."""
    one = torch.ones(1, 1, dtype=torch.float64)
    return FaceCoordinates(one, -one, torch.zeros(1, dtype=torch.float64))


def values_of(outcomes: Tensor) -> Values:
    """How many values the outcomes, (n, |Y|), take; the outcome with the fewest counts."""
    fewest = min(len(column.unique()) for column in outcomes.mT)
    if fewest <= BINARY:
        return "binary"
    return "few" if fewest <= min(FEW, len(outcomes) // REPEATS) else "many"


class OutcomeKind(Solved):
    """The choice between the slack and success.

    Args:
        model: Makes an unfitted model of the slack (False) or of success (True).
        slack: The coordinates of the slack.
        seed: Seed of the folds and of the draws.

    Attributes:
        classified: 1 if success is modelled, 0 if the slack is, (1,).
    """

    def __init__(self, model: Callable[[bool], FeatureRegression], slack: FaceCoordinates, seed: int) -> None:
        super().__init__()
        self.model, self.slack, self.latent, self.seed = model, slack, latent_face(), seed
        self.register_fitted("classified")
        self.classified: Tensor

    def sizes(self) -> Sizes:
        """One number."""
        return {"classified": (1,)}

    def faults(self) -> list[str]:
        """Sizes, and a choice that is none."""
        found = super().faults()
        if found or float(self.classified) in (0.0, 1.0):
            return found
        return [f"classified: expected 0 or 1; got {float(self.classified)}"]

    @property
    def of_success(self) -> bool:
        """Whether success itself is modelled; False before the choice."""
        return self.fitted and bool(self.classified)

    @property
    def faces(self) -> FaceCoordinates:
        """The coordinates that are modelled: of the slack, or the latent sum."""
        return self.latent if self.of_success else self.slack

    def targets(self, outcomes: Tensor) -> Tensor:
        """What is modelled: the slack's coordinates, or whether rows are desired, (n, |Y|) -> (n, q)."""
        coordinates = self.slack.of_outcomes(outcomes)
        if not self.of_success:
            return coordinates
        return self.slack.desired(coordinates).to(torch.float64).unsqueeze(-1)

    def _desired(self, outcomes: Tensor) -> Tensor:
        """Whether rows are desired, (n, |Y|) -> (n,), 0 or 1."""
        return self.slack.desired(self.slack.of_outcomes(outcomes)).to(torch.float64)

    def solve(self, *examples: Tensor) -> None:
        """Chooses from the inputs of the first candidate set (n, p), standardised, and outcomes (n, |Y|).

        Of more than 10,000 rows, so many are drawn by the seed for held-out scores.

        Raises:
            ValueError: if an outcome has two values only, and all rows are desired or none is.
        """
        inputs, outcomes = (each.detach().to(torch.float64) for each in examples)
        values, number = values_of(outcomes), len(outcomes)
        count = int(self._desired(outcomes).sum())
        rarer = min(count, number - count)
        if values == "binary" and not rarer:
            which = "every one" if count else "none"
            raise ValueError(
                f"an outcome has two values only, and {which} of the {number} rows is desired: the "
                "rows do not show what makes the difference; add rows of both kinds, or change the region"
            )
        self.classified = outcomes.new_tensor([float(values == "binary")])
        if values != "few" or rarer < FEWEST_ROWS:
            return
        some = drawn(number, SCORED_ROWS, generator(self.seed + 2)).to(outcomes.device)
        inputs, outcomes = inputs[some], outcomes[some]
        desired = self._desired(outcomes)
        folds = torch.randperm(len(desired), generator=generator(self.seed)).to(desired.device) % 2
        scores = []
        for classified in (0.0, 1.0):
            self.classified = desired.new_tensor([classified])
            part, targets = self.model(bool(classified)), self.targets(outcomes)
            part.solve(inputs, targets)
            stream = generator(self.seed + 1)
            predicted = held_out([part], self.faces, inputs, targets, folds, 24, 32, stream)
            scores.append(float((predicted - desired).square().mean()))
        self.classified = desired.new_tensor([float(scores[1] < scores[0])])
