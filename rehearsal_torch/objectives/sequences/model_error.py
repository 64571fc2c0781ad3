"""Error of the model in the noise of an episode: why a model of transitions may not recommend.

A replay keeps the noise of the observed episode. Where the noise of a state that the reward reads can be
predicted from state and action on held-out units (`surrogates.noise_check`), it holds errors of the model,
and gains of a search are gains in these errors. With an R2 above .1 nothing is recommended: on a simulator of
another class, where claims of 2.8 came true by .04, it was .5 and more; where claims came true, about 0.
Where it is not known, the recommendation says so (`unknown_noise`).

A reward that names doses and no state (`Reward.reads_doses`, such as costs alone) reads no state.
"""

from typing import TYPE_CHECKING

from rehearsal_torch.surrogates.noise_check import FEWEST

if TYPE_CHECKING:
    from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn

MOST = 0.1
"""The largest R2 of a state's noise with which a change is recommended."""


def model_error(objective: "CounterfactualReturn") -> str:
    """Why the model may not recommend: a sentence that names the states and their R2; empty if it may, or
    nothing is known of its noise.

    Args:
        objective: The return of an episode.
    """
    known = objective.surrogate.noise_shares()
    found = {name: known[name] for name in _read(objective) if known.get(name, 0.0) > MOST}
    if not found:
        return ""
    states = ", ".join(f"{name} {share:.2g}" for name, share in found.items())
    return (
        "the model has errors where its answers come from: what it takes for noise of the rewarded states "
        f"can be predicted from state and action on held-out units (R2: {states}; at most {MOST:g} is noise) "
        "and would be carried on: train it longer (trainer.max_epochs, trainer.patience), allow "
        "it more (surrogate.member.mechanism.location_constant, surrogate.member.effects=dense), add the "
        "states that are missing, or reward others"
    )


def unknown_noise(objective: "CounterfactualReturn") -> str:
    """That a model of rows was never checked; empty if it was, or the reward reads no state.

    Args:
        objective: The return of an episode.
    """
    shares = objective.surrogate.predictable_noise
    if shares is None or len(shares) or not _read(objective):
        return ""
    return (
        "noise: it is not known whether what the model takes for noise is noise: it was fitted with fewer "
        f"than {FEWEST} steps of training or of held-out units, or by an earlier version"
    )


def _read(objective: "CounterfactualReturn") -> tuple[str, ...]:
    """The states that the reward reads; all of them if it does not say."""
    reward = objective.reward
    return reward.reads or (() if reward.reads_doses else objective.surrogate.names)
