"""Look-back: the few changes of an episode's actions with the largest counterfactual return.

    decision = rt.look_back(rt.load("checkpoints/sepsis"), episode, changes=3)

The noise of each step is abducted from the episode, and the search maximises the counterfactual return over
the action sequences with at most k changes; ``decision.trace["proven"]`` tells whether the method has proven
optimality. The proof holds for the fitted model.

Source: Tsirtsis and Gomez-Rodriguez (2023), Eq. 7-9.
"""

import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from narwhals.typing import IntoDataFrame

from rehearsal_torch.api.episode_model import EpisodeModel
from rehearsal_torch.api.episode_query import LookedBack, best_change, transitions_of
from rehearsal_torch.api.fit_and_decide import in_words
from rehearsal_torch.api.load import load
from rehearsal_torch.checkpoint import card
from rehearsal_torch.data.decision import EpisodeCase
from rehearsal_torch.data.episode import Episode
from rehearsal_torch.data.table import Table
from rehearsal_torch.objectives.step_reward import Reward
from rehearsal_torch.surrogates.surrogate import Surrogate
from rehearsal_torch.user_error import RequestWarning


def look_back(
    model: Surrogate | EpisodeModel | str | Path,
    episode: Episode | EpisodeCase,
    changes: int = 3,
    method: str = "branch_and_bound",
    reward: Reward | Mapping[str, float] | str | None = None,
    seed: int = 0,
    records: Sequence[Episode] | Table | IntoDataFrame | None = None,
    **settings: object,
) -> LookedBack:
    """The best change of at most k actions of an episode.

    Args:
        model: A fitted transition model, or one with its task (`EpisodeModel`), as `load` returns them, or
            the folder of a checkpoint or run. One with its task brings reward, words and settings along.
        episode: The observed episode; an `EpisodeCase` also marks the time steps whose action may not change.
        changes: k, the maximum number of actions that differ from the observed ones.
        method: The name of a file in ``conf/decision``, such as "branch_and_bound", "astar" or "greedy".
        reward: The reward of a step: a `Reward`; the name of a file in ``conf/reward``, such as "sofa_score"
            or "sofa_organs"; or features to weights, in 1 / the feature's unit. The return is the sum over
            the T steps. None is that of the model's task, else the method's own: minus the SOFA score.
        seed: Determines the draws of random baselines.
        records: The episodes to which the model was fitted, or their `transitions`, as a table or a data
            frame; no decision depends on them. `hidden_cause` needs them, as no checkpoint keeps them.
        settings: Overrides of the configuration by dotted keys, such as ``**{"search.budget_s": 10}``.

    Returns:
        The decision, with `to_frame()`, `plot()` and a display in notebooks: the alteration sets
        ``action[t]`` to an action number for each changed time step t, and `doses` holds the corresponding
        doses; `estimate` and `baseline` are the return with and without the changes; `hidden_cause` of a
        recommendation is the strength of a hidden common cause that would overturn it. Where that cannot be
        computed, it is None, and ``trace["hidden_cause"]`` says why.

    Warns:
        RequestWarning: if the records are not those that the card of a checkpoint folder names.

    Raises:
        CheckpointError: if the folder holds no usable checkpoint.
        RequestError: if the model is not a model of episodes, it does not match the episode, the records or
            the reward, or there is no such method for this question, or no such setting.
    """
    with in_words():
        fitted_model: Any = load(model) if isinstance(model, str | Path) else model
    has_task = isinstance(fitted_model, EpisodeModel)
    search = fitted_model.best_change if has_task else partial(best_change, fitted_model)
    decision: LookedBack = search(episode, changes, method, reward, seed, records, settings)
    if records is not None and isinstance(model, str | Path):
        rows = transitions_of(records, fitted_model.surrogate if has_task else fitted_model)
        recorded, now = card(model).get("data_fingerprint"), rows.fingerprint()
        if isinstance(recorded, str) and now != recorded:
            warnings.warn(
                f"records: {model} was fitted to other transitions than these {len(rows)} ({recorded[:12]}, "
                f"here {now[:12]}), so that hidden_cause is that of another table: give those of the fit",
                RequestWarning,
                stacklevel=2,
            )
    return decision
