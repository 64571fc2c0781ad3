"""Look-back: the few changes of an episode's actions with the largest counterfactual return.

    decision = rt.look_back(rt.load("checkpoints/sepsis"), episode, changes=3)

The noise of each step is abducted from the episode, and the search maximises the counterfactual return over
the action sequences with at most k changes; ``decision.trace["proven"]`` tells whether the method has proven
optimality. The proof holds for the fitted model.

    decision = rt.look_back("checkpoints/sepsis", episode, records=episodes)

With the episodes to which the model was fitted, ``decision.hidden_cause`` says how strong a hidden common
cause would have to be to overturn the decision; without them, ``decision.trace["hidden_cause"]`` says that it
was not computed.

Source: Tsirtsis and Gomez-Rodriguez (2023), Eq. 7-9.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rehearsal_torch.api.configured import (
    Method,
    configuration,
    decided,
    in_words,
    method_of,
    plain,
    undisturbed,
)
from rehearsal_torch.api.methods import RequestError, RequestWarning, check_method
from rehearsal_torch.data.decision import Decision, DecisionContext, EpisodeCase
from rehearsal_torch.data.episode import transitions
from rehearsal_torch.data.question import Columns, Question
from rehearsal_torch.data.table import Table
from rehearsal_torch.problems.problem import Problem

if TYPE_CHECKING:
    from narwhals.typing import IntoDataFrame
    from omegaconf import DictConfig

    from rehearsal_torch.api.episode_model import EpisodeModel
    from rehearsal_torch.api.looked_back import LookedBack
    from rehearsal_torch.data.decision import EpisodeCase
    from rehearsal_torch.data.episode import Episode
    from rehearsal_torch.data.table import Table
    from rehearsal_torch.objectives.reward import Reward
    from rehearsal_torch.surrogates.surrogate import Surrogate


class OneEpisode(Problem):
    """A look-back problem with one episode.

    Args:
        episode_case: The episode, and the time steps whose action is fixed.
        records: The transitions to which the surrogate was fitted; None if they are unknown.
    """

    kind = "look_back"

    def __init__(self, episode_case: EpisodeCase, records: Table | None = None) -> None:
        self.episode_case, self.records = episode_case, records

    def observations(self) -> Table:
        """The records; without them, a table with the episode's columns and no rows: one episode says nothing
        of the others.
        """
        if self.records is not None:
            return self.records
        own = transitions([self.episode_case.episode])
        return Table(own.names, own.values[:0], own.altered[:0])

    def held_out(self) -> Table:
        """The episode's own transitions, (T - 1) rows."""
        return transitions([self.episode_case.episode])

    def question(self) -> Question:
        """The episode's columns."""
        return Columns(self.episode_case.episode.names)

    def count(self) -> int:
        """1."""
        return 1

    def case(self, index: int) -> DecisionContext:
        """The episode.

        Raises:
            IndexError: for an index other than 0.
        """
        if index:
            raise IndexError(f"expected index 0, the only episode; got {index}")
        return self.episode_case

    def score(self, case: DecisionContext, decision: Decision) -> Mapping[str, float]:  # noqa: ARG002
        """Empty: the true counterfactual outcome is unknown."""
        return {}

    def card(self) -> Mapping[str, Any]:
        """The episode's identity, columns and number of time steps."""
        episode = self.episode_case.episode
        return {"episode": episode.identity, "columns": list(episode.names), "time_steps": episode.horizon}


# The configuration groups in which settings are allowed.
GROUPS = ("search", "objective")
TAKEN = {
    "objective.changes": "changes",
    **dict.fromkeys(("objective.reward", "objective.reward.weights"), "reward"),
}


def look_back(
    model: "Surrogate | EpisodeModel | str | Path",
    episode: "Episode | EpisodeCase",
    changes: int = 3,
    method: str = "branch_and_bound",
    reward: "Reward | Mapping[str, float] | str | None" = None,
    seed: int = 0,
    records: "Sequence[Episode] | Table | IntoDataFrame | None" = None,
    **settings: object,
) -> "LookedBack":
    """The best change of at most k actions of an episode.

    Args:
        model: A fitted transition model, or one with its task (`EpisodeModel`), as `load` returns them, or
            the folder of a checkpoint or run. One with its task brings the task's reward and words along, and
            its settings of the search and the objective.
        episode: The observed episode; an `EpisodeCase` also marks the time steps whose action may not change.
        changes: k, the maximum number of actions that differ from the observed ones.
        method: The name of a file in ``conf/decision``, such as "branch_and_bound" (the default), "astar" or
            "greedy".
        reward: The reward of a step: a `Reward`; the name of a file in ``conf/reward``, such as "sofa_score"
            or "sofa_organs"; or a mapping of varying features to weights, in 1 / the feature's unit. The
            return is the sum over the episode's T steps. None is that of the model's task; of a model without
            one, the method's own: minus the SOFA score ("sofa_score"), or minus the SOFA column for "astar".
        seed: Determines the draws of random baselines.
        records: The episodes to which the model was fitted, or their `transitions`, as a table or a data
            frame; no decision depends on them. `hidden_cause` needs them, as no checkpoint keeps them.
        settings: Overrides of the method's configuration, dotted key to plain value, such as
            ``**{"search.budget_s": 10}``.

    Returns:
        The decision (`api.looked_back`), with `to_frame()`, `plot()` and a display of its own in notebooks:
        the alteration sets ``action[t]`` to an action number for each changed time step t, and
        `doses` holds the corresponding doses; `estimate` and `baseline` are the return with and without the
        changes; `hidden_cause` of a recommendation is the strength of a hidden common cause that would
        overturn it, as in the lines of a run. Where that cannot be computed (no records, altered ones or too
        few, or a model that is not one of transitions with doses), it is None, and ``trace["hidden_cause"]``
        says why.

    Warns:
        RequestWarning: if the records are not those that the card of a checkpoint folder names.

    Raises:
        CheckpointError: if the folder holds no usable checkpoint.
        RequestError: if the model is not a model of episodes, it does not match the episode, the records or
            the reward, there is no such method or setting, or the method is for another kind of problem.
        ValueError: base class of all of the above.
    """
    from rehearsal_torch.data.decision import EpisodeCase
    from rehearsal_torch.data.episode import Episode
    from rehearsal_torch.surrogates.surrogate import EpisodeSurrogate

    if isinstance(changes, bool) or not isinstance(changes, int) or changes < 0:
        raise RequestError(f"changes: expected a whole number of at least 0; got {changes!r}")
    if not isinstance(episode, Episode | EpisodeCase):
        raise RequestError(f"episode: expected an Episode or an EpisodeCase; got a {type(episode).__name__}")
    for key, argument in TAKEN.items():
        if key in settings:
            raise RequestError(f"{key!r} is the argument `{argument}`: give it there")
    with in_words(), undisturbed():
        from rehearsal_torch.api.episode_model import EpisodeModel
        from rehearsal_torch.api.looked_back import LookedBack, words_for
        from rehearsal_torch.api.saving.saved_model import load

        check_method(method, "look_back")
        known = load(model) if isinstance(model, str | Path) else model
        task = known if isinstance(known, EpisodeModel) else None
        fitted = known.surrogate if isinstance(known, EpisodeModel) else known
        words = None
        if task is not None:
            settings = {**task.settings, **settings}
            if reward is None:
                reward, words = task.reward, task.words
        if not isinstance(fitted, EpisodeSurrogate):
            raise RequestError(
                f"model: expected a model of episodes, such as a TransitionModel; got a "
                f"{type(fitted).__name__}"
            )
        named = [f"reward={reward}"] if isinstance(reward, str) else []
        config = configuration(
            [f"decision={method}", *named, f"objective.changes={changes}"], settings, GROUPS
        )
        chosen = _with_reward(method_of(config), reward)
        past = None if records is None else _transitions(records, fitted)
        case = episode if isinstance(episode, EpisodeCase) else EpisodeCase(episode)
        (made,) = decided(OneEpisode(case, past), fitted, chosen, seed)
    if past is not None and isinstance(model, str | Path) and (other := _other_records(past, model)):
        warnings.warn(other, RequestWarning, stacklevel=2)
    if words is None:
        words = words_for(_reward_node(config, reward), fitted.dose_names)
    found = LookedBack.of(made, replace(words, first=case.first))
    beyond = () if task is None else task.beyond(case.episode)
    return replace(found, findings=(*found.findings, *beyond))


def _reward_node(config: "DictConfig", reward: "Reward | Mapping[str, float] | str | None") -> dict[str, Any]:
    """The reward of a step as a node of a configuration; empty for a class of one's own."""
    from rehearsal_torch.objectives.reward import LinearReward

    if isinstance(reward, LinearReward):
        return {"weights": dict(reward.weights)}
    if isinstance(reward, Mapping):
        return {"weights": dict(reward)}
    named = plain(config)["objective"].get("reward") if reward is None or isinstance(reward, str) else None
    return dict(named) if isinstance(named, Mapping) else {}


def _transitions(records: "Sequence[Episode] | Table | IntoDataFrame", model: "Surrogate") -> "Table":
    """The records as a table of transitions."""
    from rehearsal_torch.data.episode import Episode, transitions
    from rehearsal_torch.data.table import Table
    from rehearsal_torch.data.tables.in_memory import cells_of, row_count
    from rehearsal_torch.objectives.sequences.sequence_overturning import SequenceOverturning

    if isinstance(records, Sequence) and all(isinstance(each, Episode) for each in records):
        if not records:
            raise RequestError("records: expected the episodes to which the model was fitted; got none")
        records = transitions(records)
    if row_count(records) is not None:
        records = Table(*cells_of(records, None, "records"))
    if not isinstance(records, Table):
        kinds = {type(each).__name__: None for each in records} if isinstance(records, Sequence) else {}
        found = f"a {type(records).__name__}" + (f" of {', '.join(kinds)}" if kinds else "")
        raise RequestError(f"records: expected a list of Episodes, or their transitions; got {found}")
    if not len(records):
        raise RequestError("records: expected the transitions to which the model was fitted; got none")
    hidden = SequenceOverturning(model, lambda: records)
    if not hidden.models:
        raise RequestError(
            f"records: a {type(model).__name__} is not a model of transitions with doses, so that no hidden "
            "cause is computed from them: leave them out"
        )
    if missing := hidden.missing(records.names):
        raise RequestError(
            f"records: no column {missing}; a primed name is that of the next time step "
            "(rehearsal_torch.transitions)"
        )
    if wrong := [name for name in records.names if not bool(records.columns([name]).isfinite().all())]:
        raise RequestError(
            f"records: the columns {wrong} hold values that are missing or infinite; expected finite "
            "numbers: leave those transitions out"
        )
    return records


def _other_records(records: "Table", folder: str | Path) -> str:
    """A sentence if a checkpoint was fitted to other transitions; empty if not, or its card does not say."""
    from rehearsal_torch.checkpoint import card

    known = card(folder).get("data_fingerprint")
    if not isinstance(known, str) or records.fingerprint() == known:
        return ""
    return (
        f"records: {folder} was fitted to other transitions than these {len(records)} ({known[:12]}, here "
        f"{records.fingerprint()[:12]}), so that hidden_cause is that of another table: give those of the fit"
    )


def _with_reward(method: Method, reward: "Reward | Mapping[str, float] | str | None") -> Method:
    """The method with the given reward in its objective; None and a name keep that of the configuration."""
    from rehearsal_torch.objectives.reward import LinearReward, Reward

    if reward is None or isinstance(reward, str):
        return method
    if not isinstance(reward, Reward | Mapping):
        raise RequestError(
            "reward: expected weights, such as {'SOFA': -1}, the name of a reward, such as 'sofa_score', or "
            f"a Reward; got a {type(reward).__name__}"
        )
    given: Any = reward if isinstance(reward, Reward) else LinearReward(reward)
    made: Any = method.objective
    return Method(partial(made.func, **{**made.keywords, "reward": given}), method.search, method.certify)
