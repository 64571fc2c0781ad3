"""Errors of learnt counterfactuals and true values of recommended sequences, on the simulated cohort.

Only simulated patients have known counterfactuals. For each patient and each treatment sequence evaluated,
the learnt counterfactual states are compared with the true ones, feature by feature,

    RMSE = sqrt(mean over the steps after the first change of (learnt - true)^2),

and for SOFA also over all steps, because the score of the changed step itself counts the dose that is given
in it. A model that does not have SOFA among its states is scored by the rules of SOFA on its predicted vitals
and the doses of the sequence. Beside the prediction stand two references: the observed trajectory (as if
nothing had changed) and a prediction with fresh noise (the model without abduction). For a recommended
sequence there are its claimed improvement, its true one with the part that is due to organs, and its regret:
the difference between the best sequence under the true mechanism and the recommended one.

The truth is the simulator's own mechanism with the patient's level and the noise that each step really had. A
changed action gives the dose that its level stands for, an unchanged one the dose that was really given,
jitter included, so that a sequence without changes reproduces the observed trajectory. A true gain has two
parts. With the states x, x' and the vasopressor doses v, v' of the observed and of the changed trajectory,
the summed score S falls by

    S(x, v) - S(x', v') = [S(x, v) - S(x', v)] + [S(x', v) - S(x', v')]
                             through states          through scoring

The first part is the effect on the patient; the second is what the score no longer counts because a drug was
withheld, or counts because it was given. The reverse order, scoring first, gives another decomposition where
the two interact. Causal worlds know the noise behind their rows (`noise_recovery`); other problems know no
truth beyond the score of each decision.

Source: Tsirtsis and Gomez-Rodriguez (2023), Sec. 5 and Eq. 6 (with the true noise instead of an abducted
one); Komorowski et al. (2018) for the score of a step.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch import Tensor

from rehearsal_torch.data.decision import Decision, EpisodeCase, action_name
from rehearsal_torch.data.episode import Episode
from rehearsal_torch.evaluation.noise_recovery import recovery_rows
from rehearsal_torch.evaluation.run_record import SCORES, counterpart
from rehearsal_torch.mechanisms.mechanism import replay
from rehearsal_torch.problems.problem import Problem
from rehearsal_torch.problems.sequences.four_hour_table import STATES
from rehearsal_torch.problems.sequences.sepsis_cohort import SepsisSimulated, emit, sofa, true_trajectory
from rehearsal_torch.problems.trials.causal_world import CausalWorld
from rehearsal_torch.round_record import decision_of
from rehearsal_torch.seeding import seeded, spaced_generator
from rehearsal_torch.spaces.box import Alteration
from rehearsal_torch.surrogates.network.causal_surrogate import CausalModel
from rehearsal_torch.surrogates.surrogate import Surrogate
from rehearsal_torch.surrogates.transition import TransitionModel
from rehearsal_torch.surrogates.transition_ensemble import TransitionEnsemble

FEATURES = (*STATES, "SOFA")
Model = TransitionModel | TransitionEnsemble


@dataclass(frozen=True)
class TruthRow:
    """One quantity of one patient.

    Attributes:
        sequence: The treatment sequence: "recommended" or "random change".
        quantity: "rmse", "rmse of all steps", "improvement", "gain", "return" or "regret".
        feature: The state of an RMSE; "organs" or "doses scored" for the parts of a gain; "organ SOFA" or
            "reward" for improvements claimed in these, the latter of unknown truth; "SOFA" otherwise.
        estimator: Such as "learnt", "observed trajectory", "fresh noise", "claimed", "true", "no action".
        value: In the feature's unit; improvements relative; gains, returns, regrets in summed SOFA points.
    """

    episode: str
    sequence: str
    quantity: str
    feature: str
    estimator: str
    value: float


def truth_rows(
    surrogate: Model,
    problem: SepsisSimulated,
    decisions: Sequence[tuple[EpisodeCase, Decision]],
    changes: int,
    optimum: int | None = 2,
    claims: Sequence[str] | None = None,
) -> Iterator[TruthRow]:
    """Compares a learnt model with the truth of a simulated cohort, patient by patient.

    Args:
        changes: k, the maximum number of changes of a decision.
        optimum: Largest k whose true optimum is enumerated (0.1 s a patient for 2, 5 s for 3); None for none.
        claims: What the decisions claim: "SOFA", "organ SOFA" or "reward" for each; None for SOFA.
    """
    # The truth lies on the CPU.
    surrogate = surrogate.on_cpu()
    claimed = iter(["SOFA"] * len(decisions) if claims is None else claims)
    for case, decision in decisions:
        episode = case.episode
        yield from _error_rows(surrogate, problem, episode, decision, "recommended")
        change = random_change(surrogate, problem, episode)
        yield from _error_rows(surrogate, problem, episode, change, "random change")
        yield from _gain_rows(surrogate, problem, case, decision, changes, optimum, next(claimed))


def random_change(surrogate: Model, problem: SepsisSimulated, episode: Episode) -> Decision:
    """One action changed at one step, both drawn at random; the same at every call."""
    generator = spaced_generator(problem.seed, int(episode.identity))
    levels = surrogate.each[0].levels
    observed, count = levels.digitise(episode.columns(levels.names))[:-1], levels.actions
    step = int(torch.randint(0, max(1, (len(observed) + 1) // 2), (), generator=generator))
    current, offset = int(observed[step]), int(torch.randint(1, count, (), generator=generator))
    # The drawn action, or the next selectable one.
    candidates = [(current + 1 + (offset - 1 + k) % (count - 1)) % count for k in range(count - 1)]
    action = next((action for action in candidates if bool(levels.selectable[action])), current)
    if action == current:
        return Decision(None, math.nan)
    name, new = action_name(step), observed.new_tensor([action])
    return Decision(Alteration((name,), new), math.nan, doses={name: tuple(surrogate.doses(new[0]).tolist())})


@dataclass(frozen=True)
class _Errors:
    """Prediction minus truth, (T, F), of the features predicted, and the step of the first change."""

    features: tuple[str, ...]
    values: Tensor
    change: int


def _error_rows(
    surrogate: Model, problem: SepsisSimulated, episode: Episode, decision: Decision, sequence: str
) -> Iterator[TruthRow]:
    for estimator, errors in _differences(surrogate, problem, episode, decision).items():
        # Nothing comes after the last step.
        after = _rmse(errors.values[errors.change + 1 :]) if errors.change + 1 < len(errors.values) else []
        for feature, value in zip(errors.features, after, strict=bool(after)):
            yield TruthRow(episode.identity, sequence, "rmse", feature, estimator, value)
        if "SOFA" in errors.features:
            value = _rmse(errors.values)[errors.features.index("SOFA")]
            yield TruthRow(episode.identity, sequence, "rmse of all steps", "SOFA", estimator, value)


def _rmse(errors: Tensor) -> list[float]:
    roots: list[float] = errors.square().mean(0).sqrt().tolist()
    return roots


@torch.no_grad()
def _differences(
    surrogate: Model, problem: SepsisSimulated, episode: Episode, decision: Decision
) -> dict[str, _Errors]:
    """Estimator to prediction minus truth; empty without changes."""
    trajectory = surrogate.trajectory(episode)
    given_doses = surrogate.doses(trajectory.observed)
    changed = {
        step: action
        for step, action in decision.actions().items()
        if bool((surrogate.doses(torch.tensor(action)) != given_doses[step]).any())
    }
    if not changed:
        return {}
    actions = trajectory.observed.clone()
    actions[list(changed)] = torch.tensor(list(changed.values()))
    before, after = problem.trajectories_of_doses(episode, decision)
    predictions = {
        "learnt": (replay(trajectory, actions.unsqueeze(0))[0], after),
        "observed trajectory": (trajectory.states, before),
        "fresh noise": (_fresh_noise(surrogate, episode, actions[:-1]), after),
    }
    truth = problem.true_states(episode, decision)
    errors = {}
    for estimator, (states, doses) in predictions.items():
        members = [
            _with_sofa(surrogate.names, predicted, doses[:, 0])
            for predicted in surrogate.member_units(states).unbind(-2)
        ]
        features, values = members[0][0], torch.stack([predicted for _, predicted in members]).mean(0)
        columns = [FEATURES.index(name) for name in features]
        errors[estimator] = _Errors(features, values - truth[:, columns], min(changed))
    return errors


def _with_sofa(names: Sequence[str], states: Tensor, vasopressor: Tensor) -> tuple[tuple[str, ...], Tensor]:
    """The predicted features with a known truth; SOFA by its rules where only its vitals are states."""
    columns = {name: states[:, column] for column, name in enumerate(names)}
    if "SOFA" not in columns and all(name in columns for name in STATES):
        vitals = torch.stack([columns[name] for name in STATES], -1)
        vitals[:, STATES.index("GCS")] = vitals[:, STATES.index("GCS")].round()
        columns["SOFA"] = sofa(vitals, vasopressor)
    features = tuple(name for name in FEATURES if name in columns)
    return features, torch.stack([columns[name] for name in features], -1)


def _fresh_noise(surrogate: Model, episode: Episode, actions: Tensor) -> Tensor:
    """The states (T, D), or (T, M D) of an ensemble, with fresh noise: a prediction without abduction."""
    members = surrogate.each if isinstance(surrogate, TransitionEnsemble) else (surrogate,)
    members = members[: surrogate.members]
    return torch.cat([_fresh_noise_member(model, episode, actions) for model in members], -1)


def _fresh_noise_member(surrogate: TransitionModel, episode: Episode, actions: Tensor) -> Tensor:
    """The states under the actions with fresh noise, (T, D)."""
    mechanism = surrogate.mechanism
    scaled = surrogate.rescale.scale(episode.columns(surrogate.rescale.names)).to(mechanism.factor)
    width = len(surrogate.varying)
    # The same noise for every seed of the configuration.
    with seeded(int(episode.identity)):
        noise = mechanism.noise((len(actions),))
    states = [scaled[0, :width]]
    encoded = surrogate.levels.encoded(actions).to(scaled)
    for step, dose in enumerate(encoded):
        states.append(mechanism(torch.cat([states[-1], scaled[step, width:], dose]), noise[step]))
    return torch.stack(states).to(torch.float64)


def _gain_rows(
    surrogate: Model,
    problem: SepsisSimulated,
    case: EpisodeCase,
    decision: Decision,
    changes: int,
    optimum: int | None,
    claim: str,
) -> Iterator[TruthRow]:
    truth = problem.score(case, decision)
    # A refusal recommends nothing, and so claims nothing.
    claimed = 0.0 if decision.undecided else decision.improvement
    row = TruthRow(case.identity, "recommended", "improvement", "SOFA", "claimed", claimed)
    yield replace(row, feature=claim)
    for name, feature in SCORES.items():
        yield replace(row, feature=feature, estimator="true", value=truth[f"{name}_improvement"])
    states, scoring = gain_parts(problem, case.episode, decision)
    yield replace(row, quantity="gain", feature="organs", estimator="true", value=states)
    yield replace(row, quantity="gain", feature="doses scored", estimator="true", value=scoring)
    yield replace(row, quantity="return", estimator="no action", value=truth["true_observed"])
    yield replace(row, quantity="return", estimator="true", value=truth["true_value"])
    # The true optimum keeps the last action, which changes the score of its own step alone.
    last = case.episode.horizon - 1 in decision.actions()
    if optimum is None or changes > optimum or last:
        return
    best = problem.best(case.episode, changes, surrogate.each[0].levels)
    yield replace(row, quantity="return", estimator="true optimum", value=best)
    yield replace(row, quantity="regret", estimator="true", value=best - truth["true_value"])
    yield replace(row, quantity="regret", estimator="no action", value=best - truth["true_observed"])


def truth_table(
    problem: Problem, surrogate: Surrogate, lines: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Compares the lines of a run's decisions with the truth; no rows where that is not known."""
    if isinstance(problem, CausalWorld) and isinstance(surrogate, CausalModel):
        return [asdict(row) for row in recovery_rows(problem, surrogate)]
    if not isinstance(problem, SepsisSimulated) or not isinstance(surrogate, Model):
        return []
    decisions, claims, changes = [], [], 0
    for line in lines:
        case = problem.case(line["index"])
        assert isinstance(case, EpisodeCase)
        decisions.append((case, decision_of(line)))
        truth = counterpart(line["trajectory"], problem.score(*decisions[-1]))
        claims.append(SCORES[truth] if truth else "reward")
        changes = max(changes, int(line["trajectory"]["changes"]))
    return [asdict(row) for row in truth_rows(surrogate, problem, decisions, changes, claims=claims)]


def gain_parts(problem: SepsisSimulated, episode: Episode, decision: Decision) -> tuple[float, float]:
    """The true gain of a decision through states and through scoring, in SOFA points, positive if better."""
    doses_before, doses_after = problem.trajectories_of_doses(episode, decision)
    pair = torch.stack((doses_before, doses_after))
    observed, altered = emit(true_trajectory(problem.cohort, int(episode.identity), pair))
    observed_sum, state_sum, changed_sum = (
        float(sofa(states, doses[:, 0]).sum())
        for states, doses in ((observed, doses_before), (altered, doses_before), (altered, doses_after))
    )
    return observed_sum - state_sum, state_sum - changed_sum
