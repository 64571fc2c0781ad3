"""Session of a file of trials that a page continues: what to try next, what came of it, what to adopt.

Everything goes through `rt.CausalOptimiser` and its file: every answer first reads what other processes have
written, a change is on disk before it is answered, and two processes on one file lose no trial. A report
names the trial as it was proposed; if another process has recorded one in the meantime, it becomes a trial of
its own. A run of trials is shown but not continued: it decides by the command line, and has no file of trials
that reports could be written to; the page says how to make one.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, FiniteFloat

from rehearsal_torch.api.fit_and_decide import in_words, undisturbed
from rehearsal_torch.api.optimiser import CausalOptimiser
from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.finding import undecided
from rehearsal_torch.data.trials.trial import Recommended, Settings, Suggestion, Trial
from rehearsal_torch.data.trials.trial_log import TrialLog
from rehearsal_torch.explorer.charts import rewards_picture
from rehearsal_torch.explorer.open_run import beside, cautions_of, source_of
from rehearsal_torch.explorer.server import PATIENCE, Asked, Question, Questions, Turns
from rehearsal_torch.problems.drafts.draft_yaml import YAML
from rehearsal_torch.reporting.page.data_card import both_in_words, of_trials, weighted_sum
from rehearsal_torch.reporting.page.page_content import Material, and_list, counted, finite, listed, mapping
from rehearsal_torch.reporting.page.reasons import TRIALS
from rehearsal_torch.reporting.page.sentences import said_of_trials
from rehearsal_torch.reporting.page.sentences import settings as settings_in_words
from rehearsal_torch.reporting.trial_view import front_in_words, front_table
from rehearsal_torch.user_error import RequestError, UserError

MOST = 1000
# Rows in the list, at most; the figure has all.
LISTED = 200
Typed = Annotated[dict[str, FiniteFloat | Annotated[str, Field(max_length=200)]], Field(max_length=MOST)]
Reason = Annotated[str, Field(max_length=1000)]


class NextAsked(Asked):
    """A request for so many trials, or for the action to adopt, in a context, with some actions held."""

    count: int = 1
    fixed: Typed = Field(default_factory=dict)
    context: Typed = Field(default_factory=dict)


class Told(Asked):
    """Result of a pending trial, or of an experiment that was not proposed (None), as it was typed; or why a
    pending one has none.
    """

    trial: int | None = None
    settings: Typed = Field(default_factory=dict)
    nodes: Typed = Field(default_factory=dict)
    reason: Reason = ""


class TrialSession:
    """Answers of one file of trials; `BusyError` while another is computed, or the optimiser's errors."""

    page = "trials.html"

    def __init__(self, optimiser: CausalOptimiser, file: Path, method: str) -> None:
        self.optimiser, self.file, self.method = optimiser, file, method
        self._turns, self._recommendation = Turns(PATIENCE), dict[str, Any]()

    def questions(self) -> Questions:
        """Its questions, by name."""
        lists, ended = ("summary", "pending", "rows"), ("summary", "pending", "rows", "told", "adopted")

        def report(recorded: Callable[[Told], dict[str, Any]], outcome: str) -> Question:
            return Question(Told, lambda told: self._ended(recorded(told), outcome), ended)

        return {
            "trials": Question(Asked, lambda _: self._listed(), lists),
            "ask": Question(NextAsked, self._asked, (*lists, "asked")),
            "tell": report(lambda told: self.tell(told.trial, told.settings, told.nodes), "recorded"),
            "fail": report(lambda told: self.fail(told.trial, told.reason), "recorded as failed"),
            "abandon": report(lambda told: self.abandon(told.trial, told.reason), "withdrawn"),
            "adopt": Question(NextAsked, self._adopted, ("summary", "adopted")),
        }

    def describe(self) -> dict[str, Any]:
        """What all parts of the page use: question, actions, nodes and cautions."""
        task = self.optimiser.task
        texts = {name: {"texts": coding.levels} for name, coding in task.coded.items()}
        first = f"the first {self.optimiser.initial} experiments are spread evenly."
        return {
            "title": f"{self.file.stem}: {wanted_in_words(task.to_plain())}?",
            "live": True,
            "how": None,
            "fitted": f"Proposals of {self.method}, with which this page was started; {first}",
            "question": of_trials(task.to_plain()),
            "assumptions": list(TRIALS),
            "cautions": [],
            "beside": {"case": [], "action": [], "answer": []},
            "actions": [
                {"name": name, "bounds": list(bounds), "levels": list(task.box.levels.get(name, ())) or None}
                | texts.get(name, {})
                for name, bounds in task.box.bounds().items()
            ],
            "context": [{"name": name} | texts.get(name, {}) for name in task.context],
            "nodes": [{"name": name} for name in task.nodes],
            "labels": task.reward.labels,
        }

    def opening(self) -> dict[str, Any]:
        """The trials before anything is asked."""
        return {**self._listed(), "recommended": self._recommendation or None, "asked_said": "", "told": ""}

    def _listed(self) -> dict[str, Any]:
        trials = self.trials()
        course, recommendation = trials["course"], self._recommendation or None
        shown = course, recommendation, self.optimiser.task.reward.labels
        return {**trials, "pictures": [rewards_picture(*shown)] if course["numbers"] else []}

    def _asked(self, form: NextAsked) -> dict[str, Any]:
        answer = self.ask(form.count, form.fixed, form.context)
        numbers = [str(proposal["trial"]) for proposal in answer["made"]]
        noun, them = ("trials", "them") if len(numbers) > 1 else ("trial", "it")
        said = f"Proposed: {noun} {and_list(numbers)}. Type below what came of {them}."
        return {**self._listed(), "asked_said": " ".join([said, *answer["notes"]])}

    def _ended(self, answer: Mapping[str, Any], outcome: str) -> dict[str, Any]:
        """A recommendation that did not know the result is left standing no longer."""
        self._recommendation = {}
        told = " ".join([f"Trial {answer['trial']} is {outcome}.", *answer["notes"]])
        return {**self._listed(), "told": told, "recommended": None}

    def _adopted(self, form: NextAsked) -> dict[str, Any]:
        answer = self.recommend(form.fixed, form.context)
        tried = " (tried)" if answer.get("tried") else ""
        where = f", where {settings_in_words(form.context, 'is')}" if form.context else ""
        keep = settings_in_words(answer["settings"], "at") if "settings" in answer else "one of these"
        headline = f"Keep {keep}{tried}{where}."
        said = [f"{text.rstrip('.')}." for text in (answer["sentence"], *answer["advice"], *answer["notes"])]
        past = [f"{entry}." for entry in answer["past"]]
        self._recommendation = {**answer, "headline": headline, "said": said, "past": past}
        return {**self._listed(), "recommended": self._recommendation}

    def trials(self) -> dict[str, Any]:
        """The trials so far (`shown_trials`), with a sentence."""
        with self._answering():
            trials = shown_trials(self.optimiser.task, self.optimiser.trials)
            return trials | {"summary": self.optimiser.summary()}

    def ask(self, count: int, fixed: Settings, context: Settings | None = None) -> dict[str, Any]:
        """Proposes trials, which are pending from then on."""
        with self._answering() as notes:
            suggestions = self.optimiser.ask(count, fixed or None, context)
        proposals = [{"trial": suggestion.trial, "settings": dict(suggestion)} for suggestion in suggestions]
        return {"made": proposals, "notes": notes}

    def tell(
        self, trial: int | None, settings: Mapping[str, float | str], nodes: Mapping[str, float | str]
    ) -> dict[str, Any]:
        """Records what came of a trial."""
        # As typed: the optimiser checks them. A field without a number was not measured.
        task = self.optimiser.task
        measurements: Any = dict.fromkeys({*task.nodes} - {*task.reward.names}) | dict(nodes)
        ran: Any = dict(settings)
        with self._answering() as notes:
            if trial is None:
                recorded = self.optimiser.tell(ran, measurements)
            else:
                proposed = Suggestion(self._pending(trial))
                changed = ran if ran and ran != dict(proposed) else None
                recorded = self.optimiser.tell(proposed, measurements, ran=changed)
        return {"trial": recorded.id, "notes": notes}

    def fail(self, trial: int | None, reason: str) -> dict[str, Any]:
        """Records that a pending trial gave no usable measurement."""
        with self._answering() as notes:
            failed = self.optimiser.fail(Suggestion(self._pending(trial)), reason)
        return {"trial": failed.id, "notes": notes}

    def abandon(self, trial: int | None, reason: str) -> dict[str, Any]:
        """Withdraws a pending trial, which may be proposed again."""
        with self._answering() as notes:
            abandoned = self.optimiser.abandon(Suggestion(self._pending(trial)), reason)
        return {"trial": abandoned.id, "notes": notes}

    def recommend(self, fixed: Settings, context: Settings | None = None) -> dict[str, Any]:
        """The action to adopt, with its expected reward, and the best tried one beside it."""
        with self._answering() as notes:
            recommendation = self.optimiser.recommend(fixed or None, context)
            front: list[Recommended] = recommendation if isinstance(recommendation, list) else []
            stopping = [] if fixed or front else [self.optimiser.stopping(context=context)]
            advice = [] if fixed else [*stopping, *self.optimiser.at_bounds]
            past = self.optimiser.recommendations
        answer = {"advice": list(map(str, advice)), "past": past, "notes": notes}
        if front:
            settings = [(best.action, best.rewards) for best in front]
            answer |= {"sentence": front_in_words(front), "front": [best.rewards for best in front]}
            return {**answer, "table": front_table(settings, self.optimiser.with_unit)}
        return answer | {
            "sentence": str(recommendation),
            "settings": recommendation.action,
            "predicted": recommendation.predicted,
            "lower": recommendation.low,
            "upper": recommendation.high,
            "tried": recommendation.tried,
            "chance": recommendation.chance,
        }

    @contextmanager
    def _answering(self) -> Iterator[list[str]]:
        """Holds the turn for one answer, and collects its warnings."""
        notes: list[str] = []
        with self._turns.turn(), in_words(), undisturbed(), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield notes
            notes += dict.fromkeys(str(warning.message) for warning in caught)

    def _pending(self, number: int | None) -> Trial:
        trial = next((trial for trial in self.optimiser.trials if trial.id == number), None)
        if trial is None:
            raise RequestError(f"no trial has the number {number}")
        if trial.state != "pending":
            raise RequestError(
                f"trial {number} is {trial.state} already, perhaps by another page: load the trials again; "
                f"from Python, optimiser.tell({number}, ...) corrects it"
            )
        return trial


def shown_trials(task: CausalTask, trials: Sequence[Trial]) -> dict[str, Any]:
    """The trials of a task, as plain data (`listing`)."""
    completed = [trial.id for trial in trials if trial.state == "completed"]
    table = TrialLog(task, tuple(trials)).table
    values = task.reward.both(table.columns(task.reward.names)).squeeze(-1).tolist() if completed else []
    rewards = dict(zip(completed, values, strict=True))
    rows = [
        {
            "id": trial.id,
            "state": trial.state,
            "settings": trial.settings,
            "asked": trial.asked if trial.ran is not None else None,
            "nodes": dict(trial.nodes),
            "reward": rewards.get(trial.id),
            "reason": trial.reason,
        }
        for trial in trials
    ]
    return listing(rows)


def listing(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The last `LISTED` ``rows``, latest first, how many ``more`` there are, the ``pending`` ones, and the
    ``course``: numbers and rewards of the completed ones, and the best reward so far.
    """
    completed = [row for row in rows if row["reward"] is not None]
    rewards = [row["reward"] for row in completed]
    best = list(accumulate(rewards, max))
    return {
        "rows": list(rows[-LISTED:][::-1]),
        "more": max(0, len(rows) - LISTED),
        "pending": [row for row in rows if row["state"] == "pending"],
        "course": {"numbers": [row["id"] for row in completed], "rewards": rewards, "best": best},
    }


def wanted_in_words(task: Mapping[str, Any]) -> str:
    """What is asked for."""
    if pair := both_in_words(task.get("reward")):
        return f"which settings are best in expected {and_list(pair)}"
    weights = mapping(mapping(task.get("reward")).get("weights"))
    return f"which setting has the largest expected {weighted_sum(weights) or 'reward'}"


class RecordedTrials:
    """The trials that a run has recorded, to be looked at."""

    page = "trials.html"

    def __init__(self, of: Material) -> None:
        self.material = of
        if not of.run.decisions:
            design = (of.run.path / "start_design.csv").is_file()
            first = ": run the experiments of start_design.csv first" if design else ""
            raise UserError(f"holds no trials yet{first}", str(of.run.path))

    def questions(self) -> Questions:
        """None: it is shown."""
        return {}

    def describe(self) -> dict[str, Any]:
        """What the page shows: question, cautions, and how to make a file of trials."""
        card, method = self.material.card, self.material.run.choices.get("decision", "")
        data = mapping(self.material.run.config.get("dataset"))
        task, table = data.get("task"), data.get("path")
        if task is None and isinstance(table, str) and table.lower().endswith(YAML):
            # A problem file has the task, and names its experiments.
            task, table = table, None
        nodes = dict.fromkeys(name for row in self.trials()["rows"] for name in row["nodes"])
        return {
            "title": f"{source_of(self.material)}: {wanted_in_words(card)}?",
            "live": False,
            "how": {"task": task, "table": table, "method": "" if method == "excbo" else method},
            "fitted": f"Decisions of {method or 'the method'}.",
            "question": of_trials(card),
            "assumptions": list(TRIALS),
            "cautions": cautions_of(self.material),
            "beside": beside(self.material),
            "actions": [{"name": name} for key in ("actions", "settable") for name in mapping(card.get(key))],
            "context": [{"name": str(name)} for name in listed(card.get("context"))],
            "nodes": [{"name": name} for name in nodes],
        }

    def opening(self) -> dict[str, Any]:
        """The trials of the run, and its recommendation."""
        trials = self.trials()
        _, headline, sentences = said_of_trials(self.material)
        pictures = [rewards_picture(trials["course"], None)] if trials["course"]["numbers"] else []
        recommended = {"headline": headline, "said": sentences, "past": []}
        return {**trials, "pictures": pictures, "recommended": recommended}

    def trials(self) -> dict[str, Any]:
        """The trials of the run; those without an answer are proposals."""
        rows: list[dict[str, Any]] = []
        for decision in self.material.run.decisions:
            setting, reward = mapping(decision.get("alteration")), finite(decision.get("reward"))
            given = mapping(decision.get("given"))
            settings = {
                name: value if isinstance(value, str) else finite(value)
                for name, value in {**setting, **given}.items()
            }
            measurements = mapping(mapping(decision.get("answer")).get("rows"))
            nodes = {
                name: finite(values[0]) for name, values in measurements.items()
                if name not in settings and isinstance(values, list) and len(values) == 1
            }  # fmt: skip
            state = "refused" if undecided(decision) else "no action"
            if setting:
                state = "proposed" if reward is None else "completed"
            nodes = {name: value for name, value in nodes.items() if value is not None}
            row = {"id": int(decision.get("index", len(rows))) + 1, "state": state, "settings": settings}
            rows.append({**row, "asked": None, "nodes": nodes, "reward": reward, "reason": ""})
        trials = listing(rows)
        return trials | {"summary": self._summary(len(trials["course"]["numbers"]), len(rows))}

    def _summary(self, completed: int, count: int) -> str:
        """How many trials there are and have a result, and how many experiments came before them."""
        before, source = finite(self.material.card.get("rows")), self.material.card.get("source")
        after = f" after the {counted(int(before), 'experiment')} of {source}" if before and source else ""
        known = f"a result is known of {completed or 'none'}" if completed < count else "all have a result"
        return f"{counted(count, 'trial')}{after}; {known}."
