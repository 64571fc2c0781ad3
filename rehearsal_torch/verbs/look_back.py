"""Look back: which few decisions of an episode, had they been different, would have helped most.

    decision = rt.look_back(rt.load("checkpoints/sepsis"), episode, changes=3)

The noise of each step is recovered from the episode, and the sequence with at most k changed actions is
sought whose counterfactual return is largest; where the method proves it, ``decision.trace["proven"]`` says
so. The proof is about the fitted model.

Source: Tsirtsis and Gomez-Rodriguez (2023), Eq. 7-9.
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rehearsal_torch.verbs.configured import (
    Method,
    configuration,
    decisions,
    in_words,
    method_of,
    undisturbed,
)
from rehearsal_torch.verbs.methods import RequestError, check_method

if TYPE_CHECKING:
    from rehearsal_torch.data.decision import Decision, EpisodeCase
    from rehearsal_torch.data.episode import Episode
    from rehearsal_torch.objectives.counterfactual_return import Reward
    from rehearsal_torch.surrogates.surrogate import Surrogate

# The groups of the configuration that settings may be of.
GROUPS = ("search", "objective")
_TAKEN = {"objective.changes": "changes", "objective.reward": "reward", "objective.reward.weights": "reward"}


def look_back(
    model: "Surrogate | str | Path",
    episode: "Episode | EpisodeCase",
    changes: int = 3,
    method: str = "branch_and_bound",
    reward: "Reward | Mapping[str, float] | None" = None,
    seed: int = 0,
    **settings: object,
) -> "Decision":
    """The best change of at most k actions of an episode.

    Args:
        model: A fitted transition model, as `load` returns it, or the folder of a checkpoint or run.
        episode: What was observed; a `EpisodeCase` also says at which time steps the action may not change.
        changes: k, at most how many actions may differ from the observed ones.
        method: The name of a file in ``conf/decision``, such as "branch_and_bound" (the default), "astar" or
            "greedy".
        reward: What a state is worth: a reward, or weights, name of a varying feature to weight in 1 / the
            feature's unit; the return is the sum over the episode's T states. None is minus SOFA.
        seed: Decides what random baselines draw.
        settings: Overrides of the method's configuration, dotted key to plain value, such as
            ``**{"search.budget_s": 10}``.

    Returns:
        The decision: the alteration sets ``action[t]`` to an action number for each changed time step t, and
        `doses` says what these stand for; `estimate` and `baseline` are the return with and without it.

    Raises:
        CheckpointError: if the folder holds no usable checkpoint.
        RequestError: if the model is none of episodes, it does not fit the episode or the reward, there is no
            such method or setting, or the method is one for another job.
        ValueError: all of the above are one.
    """
    from rehearsal_torch.checkpoint import load
    from rehearsal_torch.data.decision import EpisodeCase
    from rehearsal_torch.data.episode import Episode
    from rehearsal_torch.surrogates.surrogate import EpisodeSurrogate

    if isinstance(changes, bool) or not isinstance(changes, int) or changes < 0:
        raise RequestError(f"changes: expected a whole number of at least 0; got {changes!r}")
    if not isinstance(episode, Episode | EpisodeCase):
        raise RequestError(f"episode: expected an Episode or an EpisodeCase; got a {type(episode).__name__}")
    for key, argument in _TAKEN.items():
        if key in settings:
            raise RequestError(f"{key!r} is the argument `{argument}`: give it there")
    with in_words(), undisturbed():
        from rehearsal_torch.verbs.one_episode import OneEpisode

        check_method(method, "look_back")
        fitted = load(model) if isinstance(model, str | Path) else model
        if not isinstance(fitted, EpisodeSurrogate):
            raise RequestError(
                f"model: expected one that replays episodes, such as a TransitionModel; got a "
                f"{type(fitted).__name__}"
            )
        config = configuration([f"decision={method}", f"objective.changes={changes}"], settings, GROUPS)
        chosen = _with_reward(method_of(config), reward)
        problem = OneEpisode(episode if isinstance(episode, EpisodeCase) else EpisodeCase(episode))
        (decision,) = decisions(problem, fitted, chosen, seed)
        return decision


def _with_reward(method: Method, reward: "Reward | Mapping[str, float] | None") -> Method:
    """The method with another reward in its objective; None keeps its own."""
    from rehearsal_torch.objectives.counterfactual_return import LinearReward, Reward

    if reward is None:
        return method
    if not isinstance(reward, Reward | Mapping):
        raise RequestError(
            f"reward: expected weights, such as {{'SOFA': -1}}, or a Reward; got a {type(reward).__name__}"
        )
    given: Any = reward if isinstance(reward, Reward) else LinearReward(reward)
    made: Any = method.objective
    return Method(partial(made.func, **{**made.keywords, "reward": given}), method.search, method.certify)
