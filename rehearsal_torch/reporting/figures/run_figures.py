"""All figures of a run folder, by what it holds.

Training curves if a model was trained; for action sequences distributions, outcomes, search effort and the
courses of a few units, and claims against the truth if the problem scored the decisions by it; for
alterations the claims of cases and over actions, and what would overturn them; for trials what was learnt,
and the rounds.
"""

import math

from matplotlib.figure import Figure

from rehearsal_torch.data.finding import findings_of, in_place
from rehearsal_torch.evaluation.overturning import sensitivity_of
from rehearsal_torch.evaluation.recorded_run import Decided, Recorded, claim, counterpart
from rehearsal_torch.evaluation.recorded_run import effort as effort_of
from rehearsal_torch.evaluation.rehearsal_rows import scored_by_world
from rehearsal_torch.evaluation.trial_rows import scored
from rehearsal_torch.reporting import alteration_report, claim_plot, decision_plot, trial_report
from rehearsal_torch.reporting.alteration_report import by_method, dataset_of, decisions_that, learnt, row_of
from rehearsal_torch.reporting.decision_frame import decision_frame, quantity
from rehearsal_torch.reporting.figures import (
    claimed_and_true,
    courses,
    effort,
    improvement_distribution,
    online_panels,
    outcomes,
    overturning_strength,
    probability_claims,
    recovery_panels,
    surrogate_panels,
    training_curve,
    trial_panels,
    true_probability,
    truth_errors,
)
from rehearsal_torch.reporting.summary import finite
from rehearsal_torch.reporting.wording import Wording

# The largest number of cases whose claims are drawn side by side.
MOST = 100


def figures(run: Recorded, words: Wording) -> dict[str, Figure]:
    """File name to figure, for everything that the run recorded."""
    drawn: dict[str, Figure] = {}
    parts = training_curve.trained_parts(run.metrics)
    if parts:
        drawn["training"] = training_curve.draw(run.metrics, parts, words)
    if trial_report.concerns(run):
        model = recovery_panels.figures(run.truth) | surrogate_panels.figures(run.curves)
        return drawn | model | _of_trials(run)
    if alteration_report.concerns(run):
        return drawn | _of_alterations(run)
    groups = {
        f"{search}, at most {changes} changes": decided
        for (search, changes), decided in run.groups().items()
        if changes is not None
    }
    if not groups:
        return drawn
    drawn["improvement"] = improvement_distribution.draw(
        {
            label: finite([decision["trajectory"]["improvement"] for decision in decided])
            for label, decided in groups.items()
        },
        words,
    )
    drawn["outcomes"] = outcomes.draw(groups, words)
    if any(
        effort_of(decision, "proven") and decision.get("seconds") is not None
        for decided in groups.values()
        for decision in decided
    ):
        drawn["effort"] = effort.draw(groups, words)
    last = list(groups.values())[-1]
    drawn[words.file] = courses.draw(courses.chosen(last), len(last), words)
    pairs = {label: _claims(decided) for label, decided in groups.items()}
    if any(claimed for claimed, _ in pairs.values()):
        drawn["truth"] = claimed_and_true.draw({label: pair for label, pair in pairs.items() if pair[0]})
    if any(row["quantity"] == "rmse" for row in run.truth):
        drawn["truth_errors"] = truth_errors.draw(run.truth)
    return drawn


def _claims(decisions: list[Decided]) -> tuple[list[float], list[float]]:
    """The claimed and the true improvements, of the decisions whose truth is known."""
    both = []
    for decision in decisions:
        score, trajectory = decision.get("score"), decision["trajectory"]
        if isinstance(score, dict):
            # Scores of own worlds may have nothing but the improvement.
            alone = "true_observed" not in score
            name = "true" if alone else counterpart(trajectory, score)
            known = finite([score.get(f"{name}_improvement")])
            both += [(float(trajectory["improvement"]), true) for true in known]
    return [claimed for claimed, _ in both], [true for _, true in both]


def _of_alterations(run: Recorded) -> dict[str, Figure]:
    """File name to figure: the claims of cases and over actions, what would overturn the recommendations, and
    comparisons with the truth where it is known. To be called within `drawing`.
    """
    drawn = _claims_of_cases(run)
    if weighed := decisions_that(run, lambda decision: sensitivity_of(decision) is not None):
        drawn["overturning"] = overturning_strength.draw(weighed)
    scored = decisions_that(run, scored_by_world)
    if not scored:
        return drawn
    drawn["probability"] = true_probability.draw(scored)
    rounds = learnt(run)
    if rounds:
        drawn["rounds"] = online_panels.draw({dataset_of(run): rounds})
    acted = {
        name: [
            row_of(run, name, decision) for decision in decisions if decision.get("alteration") is not None
        ]
        for name, decisions in scored.items()
    }
    claims = {
        name: rows for name, rows in acted.items() if any(not math.isnan(row["estimate"]) for row in rows)
    }
    return drawn | ({"calibration": probability_claims.draw(claims)} if claims else {})


def _claims_of_cases(run: Recorded) -> dict[str, Figure]:
    """What is claimed of each case, and over each action for a few of them; the former for few cases alone,
    and not for rounds, whose claims are beside the truth of each.
    """
    drawn: dict[str, Figure] = {}
    groups = by_method(run)
    lines = next(iter(groups.values()), [])
    if len(groups) == 1 and len(lines) <= MOST and not learnt(run) and any(map(claim, lines)):
        drawn["decisions"] = decision_plot.in_panels(decision_frame(lines), quantity(lines))
    units = run.words.get("units_of")
    beyond = {str(line.get("identity", "")) for line in lines if in_place(findings_of(line))}
    curves = claim_plot.draw(run.claims, units if isinstance(units, dict) else None, run.codings, beyond)
    return drawn if curves is None else drawn | {"claims": curves}


def _of_trials(run: Recorded) -> dict[str, Figure]:
    """The figure of the rounds, if a world scored them."""
    if not all(scored(decision) for decision in run.decisions):
        return {}
    methods = {trial_report.named(run, "decision"): trial_report.rounds(run)}
    return {"rounds": trial_panels.draw({trial_report.named(run, "dataset"): methods})}
