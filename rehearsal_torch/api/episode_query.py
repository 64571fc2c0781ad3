"""Search for the best changes of one episode, and the decision with its course as frame, figure and HTML.

Source: Tsirtsis and Gomez-Rodriguez (2023), Eq. 7-9.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any, Self

from narwhals.typing import IntoDataFrame
from omegaconf import DictConfig

from rehearsal_torch.api.fit_and_decide import configuration, decided, in_words, refuse_arguments, undisturbed
from rehearsal_torch.data.decision import Decision, DecisionContext, EpisodeCase
from rehearsal_torch.data.episode import Episode, transitions
from rehearsal_torch.data.table import Table
from rehearsal_torch.data.tables.in_memory import in_library, row_count
from rehearsal_torch.data.task_compatibility import Columns, Question
from rehearsal_torch.methods.hydra_config import plain
from rehearsal_torch.methods.presets import check_method
from rehearsal_torch.methods.run_parts import Method, method_of
from rehearsal_torch.objectives.sequence_sensitivity import SequenceOverturning
from rehearsal_torch.objectives.step_reward import LinearReward, Reward
from rehearsal_torch.problems.problem import Problem
from rehearsal_torch.reporting.decision_frame import table_html
from rehearsal_torch.reporting.labels import Wording, claimed_ends, wording
from rehearsal_torch.round_record import Round
from rehearsal_torch.spaces.box import setting_text
from rehearsal_torch.surrogates.surrogate import EpisodeSurrogate, Surrogate
from rehearsal_torch.user_error import RequestError

if TYPE_CHECKING:
    from matplotlib.axes import Axes


FROM, TO = "from/", "to/"


@dataclass(frozen=True, kw_only=True)
class LookedBack(Decision):
    """The decision for one episode, as `look_back` returns it, with the episode (`case`), its `trajectory`
    (rewards, doses and actions by step, observed and decided), and the names of its numbers (`words`).
    """

    case: EpisodeCase = field(repr=False, compare=False)
    trajectory: Mapping[str, Any] = field(repr=False, compare=False)
    words: Wording = field(default=Wording(), repr=False, compare=False)

    @classmethod
    def of(cls, decided: Round, words: Wording) -> Self:
        """The decision of a round with one episode."""
        assert isinstance(decided.case, EpisodeCase)
        values = {attribute.name: getattr(decided.decision, attribute.name) for attribute in fields(Decision)}
        return cls(**values, case=decided.case, trajectory=decided.trajectory, words=words)

    def to_frame(self, library: str = "pandas") -> Any:
        """A data frame (`library`) with one row per changed step: ``step`` (from 1), ``action`` and
        ``observed_action``, their numbers, and for each dose ``from/NAME`` and ``to/NAME``, in its unit or by
        the names of its levels; equal where a dose keeps its level.
        """
        import pandas as pd

        columns = ["step", "observed_action", "action"]
        columns += [f"{prefix}{name}" for name in self._doses() for prefix in (FROM, TO)]
        observed = self.trajectory["observed_actions"]
        rows = [
            [time + 1, observed[time], action, *(dose for pair in self._dose_changes(time) for dose in pair)]
            for time, action in sorted(self.actions().items())
        ]
        return in_library(pd.DataFrame(rows, columns=columns), library)

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draws the observed course and the one under the decision, with the changed steps shaded."""
        from rehearsal_torch.reporting.figure_style import drawing
        from rehearsal_torch.reporting.figures.sequence_figures import draw_course

        with drawing():
            if ax is None:
                from matplotlib import pyplot

                _, ax = pyplot.subplots(figsize=(6.2, 4.0), layout="constrained")
            draw_course(ax, {"identity": self.case.identity, "trajectory": self.trajectory}, self.words)
            ax.legend()
        return ax

    def summary(self) -> str:
        """One sentence: how many actions change, and what the model expects of that."""
        subject = self.words.titled(self.case.identity)
        if self.alteration is None:
            outcome = "refused" if self.undecided else "no action would have been changed"
            return f"{subject}: {outcome}{f': {self.reason}' if self.reason else ''}."
        changed, limit = len(self.alteration.names), self.trajectory["changes"]
        value, before = (self.words.sign * self.trajectory[key] for key in ("value", "observed"))
        share = 100 * self.trajectory["improvement"]
        proven = "; proven best for this model" if self.trace.get("proven") else ""
        hedge = "may help, " if self.status == "may" else ""
        return (
            f"{subject}: {hedge}{changed} of at most {limit} changed actions; {self.words.total[0].lower()}"
            f"{self.words.total[1:]} {setting_text(value)} instead of {setting_text(before)}, "
            f"{share:.1f}% better{claimed_ends(self.trajectory)}{proven}."
        )

    def __str__(self) -> str:
        return "\n".join(self._sentences())

    def _repr_html_(self) -> str:
        heads = [self.words.one_step.lower(), *self._doses()]
        rows = [
            [str(self.words.start + time), *(_change_text(*pair) for pair in self._dose_changes(time))]
            for time in sorted(self.actions())
        ]
        parts = [f"<p>{escape(sentence)}</p>" for sentence in self._sentences()]
        return "<div>" + "".join([*parts, *([table_html(heads, rows)] if rows else [])]) + "</div>"

    def _sentences(self) -> list[str]:
        cause = "" if self.hidden_cause is None else self.hidden_cause.sentence(self.words.actions)
        against = [f"{cause[:1].upper()}{cause[1:]}."] if cause else []
        return [self.summary(), *against, *self.warnings]

    def _doses(self) -> list[str]:
        count = len(self.trajectory["doses"][0]) if self.trajectory["doses"] else 0
        return [self.words.dose(index).name for index in range(count)]

    def _dose_changes(self, time: int) -> list[tuple[float | str, float | str]]:
        """Each dose of a step as it was given and under the decision, named where levels have names."""
        doses = zip(self.trajectory["observed_doses"][time], self.trajectory["doses"][time], strict=True)
        changes = []
        for index, (observed, chosen) in enumerate(doses):
            level = self.words.dose(index).level
            changes.append((level(observed) or observed, level(chosen) or chosen))
        return changes


def words_for(reward: Mapping[str, Any], doses: Sequence[str]) -> Wording:
    """The names of a decision's numbers, by the reward of a step (plain data) and the doses' names."""
    words = wording({"surrogate": {"doses": list(doses)}, "objective": {"reward": dict(reward)}})
    doses_named = tuple(replace(dose, name=name) for dose, name in zip(words.doses, doses, strict=True))
    return replace(words, doses=doses_named, subject="episode", subjects="episodes")


def _change_text(before: float | str, after: float | str) -> str:
    first, second = (dose if isinstance(dose, str) else setting_text(dose) for dose in (before, after))
    return first if before == after else f"{first} → {second}"


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
        """The records; without them, a table with the episode's columns and no rows."""
        if self.records is not None:
            return self.records
        table = transitions([self.episode_case.episode])
        return Table(table.names, table.values[:0], table.altered[:0])

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
        """The episode, number 0."""
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
    """`look_back` of a model without its task, whose numbers are named by `words` or the reward."""
    if isinstance(changes, bool) or not isinstance(changes, int) or changes < 0:
        raise RequestError(f"changes: expected a whole number of at least 0; got {changes!r}")
    if not isinstance(episode, Episode | EpisodeCase):
        raise RequestError(f"episode: expected an Episode or an EpisodeCase; got a {type(episode).__name__}")
    refuse_arguments(settings, TAKEN)
    with in_words(), undisturbed():
        check_method(method, "look_back")
        if not isinstance(surrogate, EpisodeSurrogate):
            raise RequestError(
                f"model: expected a model of episodes, such as a TransitionModel; got a "
                f"{type(surrogate).__name__}"
            )
        reward_name = reward if isinstance(reward, str) else None
        overrides = {**settings, "objective.changes": changes}
        config = configuration(method, overrides, GROUPS, reward=reward_name)
        chosen_method = _with_reward(method_of(config), reward)
        case = episode if isinstance(episode, EpisodeCase) else EpisodeCase(episode)
        rows_of_fit = None if records is None else transitions_of(records, surrogate)
        (round,) = decided(OneEpisode(case, rows_of_fit), surrogate, chosen_method, seed)
    if words is None:
        words = words_for(_reward_node(config, reward), surrogate.dose_names)
    return LookedBack.of(round, replace(words, first=case.first))


def _reward_node(config: DictConfig, reward: Reward | Mapping[str, float] | str | None) -> dict[str, Any]:
    if isinstance(reward, LinearReward | Mapping):
        return {"weights": dict(reward if isinstance(reward, Mapping) else reward.weights)}
    node = plain(config)["objective"].get("reward") if reward is None or isinstance(reward, str) else None
    return dict(node) if isinstance(node, Mapping) else {}


def transitions_of(records: Sequence[Episode] | Table | IntoDataFrame, model: Surrogate) -> Table:
    """The records of a fit as a table of transitions."""
    if isinstance(records, Sequence) and all(isinstance(record, Episode) for record in records):
        if not records:
            raise RequestError("records: expected the episodes to which the model was fitted; got none")
        records = transitions(records)
    if row_count(records) is not None:
        records = Table.from_frame(records, called="records")
    if not isinstance(records, Table):
        kinds = {type(record).__name__: None for record in records} if isinstance(records, Sequence) else {}
        kind = f"a {type(records).__name__}" + (f" of {', '.join(kinds)}" if kinds else "")
        raise RequestError(f"records: expected a list of Episodes, or their transitions; got {kind}")
    if not len(records):
        raise RequestError("records: expected the transitions to which the model was fitted; got none")
    overturning = SequenceOverturning(model, lambda: records)
    if overturning.model is None:
        raise RequestError(
            f"records: a {type(model).__name__} is not a model of transitions with doses, so that no hidden "
            "cause is computed from them: leave them out"
        )
    if absent := overturning.missing(records.names):
        raise RequestError(
            f"records: no column {absent}; a primed name is that of the next time step "
            "(rehearsal_torch.transitions)"
        )
    if incomplete := [name for name in records.names if not bool(records.columns([name]).isfinite().all())]:
        raise RequestError(
            f"records: the columns {incomplete} hold values that are missing or infinite; expected finite "
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
    reward_object = reward if isinstance(reward, Reward) else LinearReward(reward)
    return replace(method, objective=partial(method.objective, reward=reward_object))
