"""One episode, looked back at: the search for the few changes of its actions with the largest return.

Source: Tsirtsis and Gomez-Rodriguez (2023), Eq. 7-9.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from narwhals.typing import IntoDataFrame
from omegaconf import DictConfig

from rehearsal_torch.api.configured import configuration, decided, in_words, undisturbed
from rehearsal_torch.api.looked_back import LookedBack, words_for
from rehearsal_torch.data.decision import Decision, DecisionContext, EpisodeCase
from rehearsal_torch.data.episode import Episode, transitions
from rehearsal_torch.data.question import Columns, Question
from rehearsal_torch.data.table import Table
from rehearsal_torch.data.tables.in_memory import cells_of, row_count
from rehearsal_torch.methods.conf import plain
from rehearsal_torch.methods.presets import check_method
from rehearsal_torch.methods.run import Method, method_of
from rehearsal_torch.objectives.reward import LinearReward, Reward
from rehearsal_torch.objectives.sequence_overturning import SequenceOverturning
from rehearsal_torch.problems.problem import Problem
from rehearsal_torch.reporting.wording import Wording
from rehearsal_torch.surrogates.surrogate import EpisodeSurrogate, Surrogate
from rehearsal_torch.user_error import RequestError

# The configuration groups in which settings are allowed, and the settings that are arguments.
GROUPS = ("search", "objective")
TAKEN = {
    "objective.changes": "changes",
    **dict.fromkeys(("objective.reward", "objective.reward.weights"), "reward"),
}


class OneEpisode(Problem):
    """A look-back problem with one episode; `records` are the transitions of the surrogate's fit."""

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


def best_change(
    surrogate: Surrogate,
    episode: Episode | EpisodeCase,
    changes: int,
    method: str,
    reward: Reward | Mapping[str, float] | str | None,
    seed: int,
    records: Sequence[Episode] | Table | IntoDataFrame | None,
    settings: Mapping[str, object],
    words: Wording | None = None,
) -> LookedBack:
    """The best change of at most k actions of an episode, with the arguments of `look_back`; the numbers are
    called by `words`, or, without, by those of the reward.
    """
    if isinstance(changes, bool) or not isinstance(changes, int) or changes < 0:
        raise RequestError(f"changes: expected a whole number of at least 0; got {changes!r}")
    if not isinstance(episode, Episode | EpisodeCase):
        raise RequestError(f"episode: expected an Episode or an EpisodeCase; got a {type(episode).__name__}")
    for key, argument in TAKEN.items():
        if key in settings:
            raise RequestError(f"{key!r} is the argument `{argument}`: give it there")
    with in_words(), undisturbed():
        check_method(method, "look_back")
        if not isinstance(surrogate, EpisodeSurrogate):
            raise RequestError(
                f"model: expected a model of episodes, such as a TransitionModel; got a "
                f"{type(surrogate).__name__}"
            )
        named = reward if isinstance(reward, str) else None
        given = {**settings, "objective.changes": changes}
        config = configuration(method, given, GROUPS, reward=named)
        chosen = _with_reward(method_of(config), reward)
        case = episode if isinstance(episode, EpisodeCase) else EpisodeCase(episode)
        past = None if records is None else transitions_of(records, surrogate)
        (found,) = decided(OneEpisode(case, past), surrogate, chosen, seed)
    if words is None:
        words = words_for(_reward_node(config, reward), surrogate.dose_names)
    return LookedBack.of(found, replace(words, first=case.first))


def _reward_node(config: DictConfig, reward: Reward | Mapping[str, float] | str | None) -> dict[str, Any]:
    """The reward of a step as a node of a configuration; empty for a class of one's own."""
    if isinstance(reward, LinearReward):
        return {"weights": dict(reward.weights)}
    if isinstance(reward, Mapping):
        return {"weights": dict(reward)}
    named = plain(config)["objective"].get("reward") if reward is None or isinstance(reward, str) else None
    return dict(named) if isinstance(named, Mapping) else {}


def transitions_of(records: Sequence[Episode] | Table | IntoDataFrame, model: Surrogate) -> Table:
    """The records of a fit as a table of transitions.

    Raises:
        RequestError: if they are of another type, or not those of the model.
    """
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


def _with_reward(method: Method, reward: Reward | Mapping[str, float] | str | None) -> Method:
    """The method with the given reward in its objective; None and a name keep that of the configuration."""
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
