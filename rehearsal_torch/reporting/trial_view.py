"""Views of an optimiser's trials: a figure, and HTML for notebooks (a sentence, a table).

The figure has the reward of each completed trial, the best so far, and the posterior mean of the expected
reward of the recommended action with an interval of +-1.96 of its epistemic standard deviations: how far the
expected reward may lie from it, without the noise of a single experiment.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.table import Table
from rehearsal_torch.data.trials.trial import STATES, Recommended, Settings, Trial
from rehearsal_torch.reporting.decision_frame import table_html
from rehearsal_torch.search.trials.campaign_advice import LeftOut
from rehearsal_torch.spaces.box import setting_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHOWN = 10


class TrialView(ABC):
    """Trials of a task with a figure and HTML."""

    task: CausalTask

    @property
    @abstractmethod
    def trials(self) -> tuple[Trial, ...]:
        """All trials by number."""

    @property
    @abstractmethod
    def table(self) -> Table:
        """All completed experiments, in the order of their trials."""

    @property
    def lines(self) -> Mapping[int, int]:
        """The lines of a table that was read, by the numbers of their trials."""
        return {}

    @abstractmethod
    def recommend(self) -> Recommended:
        """The action to keep, with its expected reward."""

    @abstractmethod
    def left_out(self) -> tuple[LeftOut, ...]:
        """The reward of each completed trial as predicted by the others."""

    def plot(self, ax: "Axes | None" = None, recommended: bool = True) -> "Axes":
        """Draws the rewards of the trials, and the recommendation; of two rewards, one against the other.

        Args:
            ax: Where to draw; None makes a new figure of matplotlib.pyplot.
            recommended: Whether to fit a model for the recommendation; the legend says if none can be fitted.
        """
        from rehearsal_torch.reporting.figure_style import drawing, given_or_new

        recommendation: Any = None
        if recommended:
            with suppress(ValueError):
                recommendation = self.recommend()
        reward = self.task.reward
        with drawing():
            ax = given_or_new(ax)
            if reward.labels:
                measured = reward.both(self.table.columns(reward.names)).numpy()
                draw_front(ax, reward.labels, measured, [best.rewards for best in recommendation or ()])
            else:
                draw_rewards(ax, self._reward_of_trial(), recommendation)
            if recommended and recommendation is None:
                ax.plot([], [], " ", label="no recommendation yet: see recommend()")
            ax.legend(loc="lower left" if reward.labels else "best")
        return ax

    def plot_left_out(self, ax: "Axes | None" = None) -> "Axes":
        """Draws the reward of every trial against its prediction by the others, with the 95 % interval of an
        experiment; `ax` as of `plot`. A ValueError if there are too few.
        """
        from rehearsal_torch.reporting.figure_style import BLACK, BLUE, ORANGE, drawing, given_or_new

        rows = self.left_out()
        measured, predicted, low, high = (
            np.array([getattr(row, name) for row in rows])
            for name in ("measured", "predicted", "low", "high")
        )
        missed = (measured < low) | (measured > high)
        with drawing():
            ax = given_or_new(ax)
            groups = (~missed, BLUE, "in its interval"), (missed, ORANGE, "outside of it")
            for group, color, label in groups:
                if group.any():
                    spans = np.stack([predicted - low, high - predicted])[:, group]
                    style: Any = {"fmt": "o", "color": color, "markersize": 4, "elinewidth": 1}
                    style["label"] = f"{label} ({int(group.sum())} of {len(rows)})"
                    ax.errorbar(predicted[group], measured[group], xerr=spans, **style)
            ends = [min(measured.min(), low.min()), max(measured.max(), high.max())]
            ax.plot(ends, ends, color=BLACK, linewidth=0.8)
            ax.set(xlabel="Reward predicted by the other trials", ylabel="Measured reward")
            ax.legend(loc="lower right")
        return ax

    def summary(self) -> str:
        """One sentence: how many trials are in which state, and the largest reward so far of those that kept
        all constraints.
        """
        trials, rewards = self.trials, self._reward_of_trial()
        counts = [(state, sum(trial.state == state for trial in trials)) for state in STATES]
        states = ", ".join(f"{count} {state}" for state, count in counts if count)
        lead = f"{len(trials)} trial{'' if len(trials) == 1 else 's'}{f': {states}' if states else ''}"
        if not rewards:
            return f"{lead}; no reward is known yet."
        if labels := self.task.reward.labels:
            pairs = self.task.reward.both(self.table.columns(self.task.reward.names))
            tops = zip(labels, map(setting_text, pairs.amax(0).tolist()), strict=True)
            return f"{lead}; the largest values so far are {' and '.join(map(' '.join, tops))}."
        rows = zip(rewards.items(), self.task.keeps(self.table), strict=True)
        rewards = dict(pair for pair, keeps in rows if keeps)
        if not rewards:
            return f"{lead}; none of them is known to have kept the constraints."
        best = max(rewards, key=lambda number: rewards[number])
        settings = next(trial.settings for trial in trials if trial.id == best)
        values = ", ".join(f"{name} = {setting_text(value)}" for name, value in settings.items())
        line = f", line {self.lines[best]} of the table" if best in self.lines else ""
        what = f"the largest reward{' that kept the constraints' if self.task.constraints else ''}"
        return f"{lead}; {what} so far is {setting_text(rewards[best])}, of trial {best}{line} ({values})."

    def _repr_html_(self) -> str:
        rewards, trials = self._reward_of_trial(), self.trials
        heads = ["trial", "state", *self.task.settings, "reward"]
        rows = [
            [
                str(trial.id),
                trial.state,
                *(setting_text(trial.settings.get(name, math.nan)) for name in self.task.settings),
                setting_text(rewards[trial.id]) if trial.id in rewards else "",
            ]
            for trial in trials[-SHOWN:]
        ]
        earlier = f"<p>{len(trials) - SHOWN} earlier trials are not shown</p>" if len(trials) > SHOWN else ""
        table = table_html(heads, rows) if rows else ""
        return f"<div><p>{escape(self.summary())}</p>{table}{earlier}</div>"

    def _reward_of_trial(self) -> dict[int, float]:
        """The reward of each completed trial, by number."""
        completed = [trial.id for trial in self.trials if trial.state == "completed"]
        rewards: Sequence[float] = self.task.reward_of(self.table).tolist() if completed else []
        return dict(zip(completed, rewards, strict=True))


Rewards = Mapping[str, Sequence[float]]  # Each with its mean and the ends of its interval


def front_in_words(front: Sequence[Recommended]) -> str:
    """What a front is, and the nodes whose mechanisms the experiments contradict."""
    lead = "None of these settings is better than another in both rewards, which have 95 % intervals"
    doubt = "; the experiments contradict what the model assumes of "
    return f"{lead}{doubt * bool(front[0].contradicted)}{', '.join(front[0].contradicted)}"


def front_table(
    front: Sequence[tuple[Settings, Rewards]], with_unit: Callable[[str], str]
) -> tuple[list[str], list[list[str]]]:
    """Heads and cells of the settings of a front, with both rewards and their intervals."""
    rows = [
        [
            str(number),
            *map(setting_text, action.values()),
            *("{} ({} to {})".format(*map(setting_text, ends)) for ends in rewards.values()),
        ]
        for number, (action, rewards) in enumerate(front, 1)
    ]
    return ["keep", *map(with_unit, front[0][0]), *front[0][1]], rows


def draw_front(axes: "Axes", labels: Sequence[str], measured: np.ndarray, front: Sequence[Rewards]) -> None:
    """Draws both rewards of each trial, (n, 2), and those of a front with their intervals."""
    from rehearsal_torch.reporting.figure_style import BLACK, GREEN

    axes.plot(measured[:, 0], measured[:, 1], "o", color=BLACK, markersize=4, label="trial")
    if front:
        ends = np.array([[rewards[label] for label in labels] for rewards in front])
        mean, low, high = np.moveaxis(ends, -1, 0)
        spans = np.stack([mean - low, high - mean])
        style: Any = {"fmt": "o-", "color": GREEN, "markersize": 5, "elinewidth": 1}
        style["label"] = "front: expected rewards, 95 % intervals"
        axes.errorbar(mean[:, 0], mean[:, 1], spans[..., 1], spans[..., 0], **style)
    axes.set(xlabel=labels[0], ylabel=labels[1])


def draw_rewards(
    axes: "Axes", rewards: Mapping[int, float], recommendation: Recommended | None = None
) -> None:
    """Draws the reward of each trial by number, the best so far, and what is recommended."""
    from rehearsal_torch.reporting.figure_style import BLACK, BLUE, GREEN

    numbers, values = np.array(list(rewards), dtype=float), np.array(list(rewards.values()), dtype=float)
    axes.plot(numbers, values, "o", color=BLACK, markersize=4, label="trial")
    if len(values):
        best = np.maximum.accumulate(values)
        axes.step(numbers, best, where="post", color=BLUE, label="best so far")
    if recommendation is not None:
        mean = recommendation.predicted
        axes.axhline(mean, color=GREEN, linestyle="--", label="recommended action: posterior mean")
        if math.isfinite(recommendation.std) and recommendation.std > 0:
            low, high = recommendation.low, recommendation.high
            axes.axhspan(low, high, color=GREEN, alpha=0.15, linewidth=0, label="its 95% interval")
    axes.set(xlabel="Trial", ylabel="Reward")
