"""Brier score of untouched rows: how well a method predicts held-out outcomes where nothing is altered.

No table knows what an alteration would have brought. Whether the outcome of a row that nobody altered is
desired, it does know, and a method predicts that too. The score is the mean of (predicted - desired)^2 over
rows that the method has not seen (Brier, 1950, Verification of forecasts expressed in terms of probability),
beside that of a constant, the share of desired rows among those that it has seen. A method that does not beat
the constant has learnt nothing about the outcome.

The rows are the held-out ones for which a run decided, or, with ``claims=cross_fitted``, all rows, each
predicted by the model of the folds that has not seen it. A checkpoint may have been fitted to the rows that a
later run holds out: then there is no such score, and where that is unknown, it is not called one. Intervals
are by unit where rows belong together.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rehearsal_torch.evaluation.bootstrap import Interval, mean_interval
from rehearsal_torch.evaluation.claim_rows import number
from rehearsal_torch.evaluation.run_record import Recorded
from rehearsal_torch.files.csv_rows import read_rows

FILE, NUMBERS = "untouched.csv", ("desired", "predicted", "constant")
NEEDED = ("desired_no_action", "predicted_no_action", "constant_no_action")
HELD_OUT = "Held-out score of the untouched rows"
NONE = (
    f"{HELD_OUT}: none, as no row was held out (dataset.validation=0.2 without "
    "dataset.contexts=FILE holds some out; claims=cross_fitted scores all rows)"
)
_REMEDY = "(leave checkpoint= out, so that a model is fitted to the other rows)"
SEEN = f"{HELD_OUT}: none, as these rows were in the fit of the checkpoint {_REMEDY}"
UNKNOWN = (
    f"not a held-out score: the checkpoint was fitted to another table, in which these rows may be {_REMEDY}"
)


@dataclass(frozen=True)
class UntouchedScore:
    """Brier scores of the untouched rows: of the method, of the constant, and their paired difference."""

    rows: int
    own: Interval
    constant: Interval
    gain: Interval

    def line(self, known: bool = True) -> str:
        """One sentence with both scores; `known` says that the method has not seen the rows."""
        better, worse = self.gain.low > 0, self.gain.high < 0
        verdict = "better than" if better else "worse than" if worse else "not told apart from"
        name = "Held-out score" if known else "Score"
        sentence = (
            f"{name} of {self.rows} untouched rows (Brier, lower is better): {self.own}; a constant "
            f"{self.constant}; difference {self.gain}: {verdict} the constant"
        )
        return sentence if known else f"{sentence}; {UNKNOWN}"


def scored(run: Recorded) -> UntouchedScore | None:
    """The score of a run, None if no row was held out; PlainFileError if the file of the rows is damaged."""
    recorded = read_rows(run.path / FILE, ("unit", *NUMBERS), NUMBERS)
    rows: list[tuple[str, Mapping[str, object]]] = [(row["unit"], row) for row in recorded] or [
        (str(decision.get("unit", decision.get("identity", ""))), decision["score"])
        for decision in run.decisions
        if set(NEEDED) <= set(decision.get("score") or {})
    ]
    names = NUMBERS if recorded else NEEDED
    desired, predicted, constant = ([number(row[name]) for _, row in rows] for name in names)
    return score_of(desired, predicted, constant, [unit for unit, _ in rows])


def line(run: Recorded) -> str:
    """The score of a run of a user's own table in a sentence; empty for other runs."""
    dataset = run.choices.get("dataset")
    if dataset not in ("table", "problem"):
        return ""
    score = scored(run)
    if score is None:
        return (
            NONE if dataset == "table" else f"{HELD_OUT}: none, as no row was held out: the cases were given"
        )
    return SEEN if run.held_out_seen else score.line(run.held_out_seen is not None)


def score_of(
    desired: Sequence[float],
    predicted: Sequence[float],
    constant: Sequence[float],
    units: Sequence[str] | None = None,
) -> UntouchedScore | None:
    """The score of rows in memory, (n,) each, by unit; None if there is none with finite numbers.

    Args:
        desired: Whether the outcome is desired, 0 or 1.
        predicted: Predicted probability of a desired outcome.
        constant: The share of desired rows among those that the method has seen.
    """
    names = [str(index) for index in range(len(desired))] if units is None else units
    rows = zip(names, desired, predicted, constant, strict=True)
    valid = [row for row in rows if all(map(math.isfinite, row[1:]))]
    if not valid:
        return None
    ids = [unit for unit, *_ in valid]
    own = [(guess - wanted) ** 2 for _, wanted, guess, _ in valid]
    base = [(guess - wanted) ** 2 for _, wanted, _, guess in valid]
    gain = [base_error - own_error for own_error, base_error in zip(own, base, strict=True)]
    return UntouchedScore(len(valid), *(mean_interval(errors, units=ids) for errors in (own, base, gain)))
