"""What the truth says about the recommendations of several trainings of the default model.

A training draws its bootstrap resamples, its initial weights and the order of its examples by its own seed;
the cohort is the same. One training therefore says little about how much the figures owe to chance: the table
has, for each quantity of the truth panel (`evaluation.counterfactual_errors`), its mean over patients
averaged over the trainings, with the standard deviation, the smallest and the largest of the trainings'
means.

The model is that of the facts in study.yaml, not the published one of the other stages; settings of the
published model that are typed on the command line (``surrogate.x``) are those of each of its members.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rehearsal_torch.cli.batch_decisions import played
from rehearsal_torch.data.decision import Decision, EpisodeCase
from rehearsal_torch.evaluation.claim_rows import number
from rehearsal_torch.evaluation.counterfactual_errors import truth_rows
from rehearsal_torch.methods.instantiate import problem_of
from rehearsal_torch.methods.run_parts import build, fitted
from rehearsal_torch.problems.sequences.sepsis_cohort import SepsisSimulated
from rehearsal_torch.surrogates.transition_ensemble import TransitionEnsemble
from reproduction.job import configured
from reproduction.page import table
from reproduction.plan import study
from reproduction.record import Layout, Row
from reproduction.sepsis.fitted import configuration, overrides
from reproduction.sepsis.searches import HORIZON

STAGE = "trainings"
KEY = ("training",)
COLUMNS = (*KEY, "episode", "sequence", "quantity", "feature", "estimator", "value")
LAYOUT = Layout(study("sepsis")["stages"][STAGE]["file"], KEY, COLUMNS, exact=True)
_FACTS = study("sepsis")["facts"][STAGE]
# What the decisions claim (`evaluation.run_record`).
CLAIM = str(_FACTS["claim"])
# The quantities of the table, errors of SOFA alone; those of the other features are in the rows.
SHOWN = ("improvement", "gain", "rmse", "rmse of all steps")
WORSE = -1e-9


@dataclass(frozen=True)
class Training:
    """One training.

    Attributes:
        seed: Its seed.
        stage: The stage of its rows.
    """

    seed: int
    stage: str = STAGE

    @property
    def key(self) -> tuple[str, ...]:
        """The identifying cells of its rows."""
        return (str(self.seed),)


def trainings() -> list[Training]:
    """The trainings of study.yaml."""
    return [Training(int(seed)) for seed in _FACTS["seeds"]]


def retrained(options: Mapping[str, Any], job: Training) -> list[Row]:
    """The rows of a training: the truth panel of its recommendations."""
    typed = [text.replace("surrogate.", "surrogate.member.", 1) for text in overrides(options)]
    config = configured(
        [
            *typed,
            *(str(text) for text in _FACTS["overrides"]),
            f"dataset.horizon={HORIZON}",
            f"dataset.seed={configuration(options).seed}",
            f"+dataset.limit={options['episodes']}",
            f"seed={job.seed}",
        ]
    )
    problem = problem_of(config)
    assert isinstance(problem, SepsisSimulated)
    run = build(config, problem)
    surrogate = fitted(run).surrogate
    assert isinstance(surrogate, TransitionEnsemble)
    decided: list[tuple[EpisodeCase, Decision]] = []
    for each in played(run, surrogate):
        assert isinstance(each.case, EpisodeCase)
        decided.append((each.case, each.decision))
    changes = int(run.config["objective"]["changes"])
    found = truth_rows(surrogate, problem, decided, changes, None, [CLAIM] * len(decided))
    return [{"training": job.seed, **asdict(row)} for row in found]


def spread(rows: Sequence[Mapping[str, str]]) -> list[str]:
    """The mean of each quantity over trainings and the spread between them, as Markdown; empty without rows.

    Improvements and the share of patients who are worse off are in percent, gains and errors in points.

    Args:
        rows: Rows of ``trainings.csv``.
    """
    found: dict[tuple[str, str, str, str], dict[str, list[float]]] = {}
    for row in rows:
        if row["quantity"] not in SHOWN or (row["quantity"] == "rmse" and row["feature"] != "SOFA"):
            continue
        value = number(row["value"]) * (100 if row["quantity"] == "improvement" else 1)
        keys = [(row["sequence"], row["quantity"], row["feature"], row["estimator"])]
        values = [value]
        if (row["quantity"], row["feature"], row["estimator"]) == ("improvement", CLAIM, "true"):
            keys.append((row["sequence"], "worse off", CLAIM, "true"))
            values.append(100.0 * (value < WORSE))
        for key, each in zip(keys, values, strict=True):
            found.setdefault(key, {}).setdefault(row["training"], []).append(each)
    lines = []
    for (sequence, quantity, feature, estimator), by_training in found.items():
        means = [statistics.fmean(values) for values in by_training.values()]
        deviation = f"{statistics.stdev(means):.3g}" if len(means) > 1 else "-"
        lines.append(
            {
                "treatment": sequence,
                "quantity": quantity,
                "feature": feature,
                "estimator": estimator,
                "mean": f"{statistics.fmean(means):.3g}",
                "standard deviation": deviation,
                "smallest": f"{min(means):.3g}",
                "largest": f"{max(means):.3g}",
                "trainings": str(len(means)),
                "patients": str(max(len(values) for values in by_training.values())),
            }
        )
    return table(lines) if lines else []
