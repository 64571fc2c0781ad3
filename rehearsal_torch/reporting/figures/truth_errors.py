"""Figure and table: errors of learnt counterfactual states on the simulated cohort, feature by feature.

The root-mean-square error of each feature's counterfactual trajectory is shown as a share of the error of a
prediction with fresh noise, that is, of the same model without abduction; beside it, the error of taking the
observed trajectory for the counterfactual one, as if the treatment had no effect. The table also holds the
true values of the recommended sequences.
"""

import math
from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from rehearsal_torch.evaluation.bootstrap import Interval
from rehearsal_torch.reporting.style import BLACK, BLUE, VERMILION, legend_below, panels
from rehearsal_torch.reporting.summary import TruthKey, truth_means

Rows = Sequence[Mapping[str, str]]
_REFERENCE = "fresh noise"
_SHOWN = (
    ("learnt", BLUE, "o", "predicted by the model"),
    ("observed trajectory", VERMILION, "s", "taken as observed, as if actions had no effect"),
)


def draw(rows: Rows) -> Figure:
    """One panel per kind of sequence, one point per feature.

    Args:
        rows: Rows of ``truth.csv``.
    """
    rmse = {key: mean for key, mean in truth_means(rows).items() if key[1] == "rmse"}
    sequences = list(dict.fromkeys(key[0] for key in rmse))
    figure, [line] = panels(1, len(sequences), width=4.8, height=3.8)
    for axes, sequence in zip(line, sequences, strict=True):
        features = list(dict.fromkeys(key[2] for key in rmse if key[0] == sequence))
        for estimator, colour, marker, label in _SHOWN:
            share = [_share(rmse, sequence, feature, estimator) for feature in features]
            axes.plot(share, range(len(features)), marker, color=colour, label=label)
        axes.set_yticks(range(len(features)), features)
        axes.axvline(
            100, color=BLACK, linestyle=":", linewidth=1.2, label="the same model with chance drawn anew"
        )
        axes.set(
            xlabel="Error of the course (% of the error\nwith chance drawn anew)",
            title=f"Under the {sequence} actions",
        )
        axes.set_xlim(left=min(0.0, axes.get_xlim()[0]))
    legend_below(figure)
    return figure


def markdown(rows: Rows) -> list[str]:
    """The means as a table, in the features' units."""
    lines = ["| treatment | quantity | feature | estimator | mean | patients |", "|---|---|---|---|---|---|"]
    return lines + [
        f"| {' | '.join(key)} | {mean} | {mean.count} |" for key, mean in truth_means(rows).items()
    ]


def _share(rmse: Mapping[TruthKey, Interval], sequence: str, feature: str, estimator: str) -> float:
    """Mean error in percent of the reference's; NaN without a reference."""
    own, reference = (rmse.get((sequence, "rmse", feature, name)) for name in (estimator, _REFERENCE))
    if own is None or reference is None or reference.mean <= 0:
        return math.nan
    return 100 * own.mean / reference.mean
