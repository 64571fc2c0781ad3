"""Deciding for many situations: which, by how many processes, and written as they come.

Situation i belongs to shard i mod N. A run that was interrupted goes on behind its last whole line. Neither
the number of processes, nor shards, nor interruptions change a line. A run that learns (learn=true) is one
process and one shard; taken up again, it learns first from the answers that its lines recorded.

Trials on a terminal: a line a round.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from omegaconf import DictConfig
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from rehearsal_torch.cli.build import build, settle
from rehearsal_torch.cli.errors import UserError, told
from rehearsal_torch.round_line import Round, answered
from rehearsal_torch.run_folder import RunFolder

if TYPE_CHECKING:
    from rehearsal_torch.loop import Certify
    from rehearsal_torch.objectives.objective import Objective
    from rehearsal_torch.problems.problem import Problem
    from rehearsal_torch.search.search import Search
    from rehearsal_torch.surrogates.surrogate import Surrogate
    from rehearsal_torch.training.descent import Descent


class Trials:
    """What has been tried so far.

    Args:
        before: Decisions of earlier rounds, as lines of ``decisions.jsonl``, where a run goes on.
    """

    def __init__(self, before: Sequence[Mapping[str, Any]] = ()) -> None:
        self._best = max(
            (one["score"]["expected"] for one in before if "expected" in (one.get("score") or {})),
            default=float("-inf"),
        )
        self._before = time.perf_counter()

    def told(self, each: Round, total: int) -> str:
        """The line of a round: number, action, observed reward, best expected reward so far where the world
        tells it, seconds since the line before.

        Args:
            each: A round with an action and a reward.
            total: How many rounds there are.
        """
        now = time.perf_counter()
        spent, self._before = now - self._before, now
        setting = each.decision.to_dict()["alteration"] or {}
        action = ", ".join(f"{name} {_short(value)}" for name, value in setting.items())
        known = ""
        if {"expected", "start", "optimum"} <= set(each.score):
            self._best = max(self._best, each.score["expected"], each.score["start"])
            known = f", best expected {self._best:.4g} of {each.score['optimum']:.4g}"
        return f"round {each.index + 1} of {total}: {action}; reward {each.reward:.4g}{known}, {spent:.2f} s"


def _short(value: float | list[float]) -> str:
    from rehearsal_torch.spaces.box import setting_text

    return (
        setting_text(value, 3)
        if isinstance(value, float)
        else "/".join(setting_text(item, 3) for item in value)
    )


@dataclass(frozen=True)
class Method:
    """What to decide by.

    Attributes:
        objective: Makes an objective of (surrogate, situation).
        search: Finds the action.
        certify: Says how sure we are; None where nothing does.
    """

    objective: "Callable[..., Objective]"
    search: "Search[Any]"
    certify: "Certify | None"


def method_of(config: DictConfig) -> Method:
    """What the configuration decides by; built before anything is fitted, so that a wrong value costs no
    time.

    Raises:
        UserError: if there is no objective or no search, or one refuses its values.
    """
    objective, search, certify = (
        build(config, "objective"),
        build(config, "search"),
        build(config, "certificate"),
    )
    if objective is None or search is None:
        raise UserError(
            "nothing says what to decide by",
            "objective and search",
            "Choose a decision, such as decision=branch_and_bound",
        )
    return Method(objective, search, certify)


def suits(method: Method, surrogate: "Surrogate") -> None:
    """Whether an objective's settings go with a surrogate, fitted or not: the names that a reward weighs,
    say.

    Raises:
        UserError: if they do not.
    """
    from rehearsal_torch.objectives.objective import Alternatives, Objective

    made = method.objective
    if (
        isinstance(made, partial)
        and isinstance(made.func, type)
        and issubclass(made.func, Objective | Alternatives)
    ):
        with told("objective"):
            made.func.check(surrogate, **made.keywords)


def decided(
    config: DictConfig,
    folder: RunFolder,
    problem: "Problem",
    surrogate: "Surrogate",
    method: Method,
    limit: int | None,
    sweep: bool,
) -> int:
    """Decides for the situations of a run that are still undecided.

    Args:
        config: The job's configuration.
        folder: Where decisions are written.
        problem: Where situations come from.
        surrogate: What has been learnt.
        method: What to decide by.
        limit: At most so many situations of all shards together; None for all.
        sweep: Whether other jobs run beside this one.

    Returns:
        How many decisions the folder holds now.

    Raises:
        UserError: if the folder holds decisions for other situations.
    """
    from rehearsal_torch.loop import rounds

    learn = learning(config, problem)
    settle(int(config.seed))
    count = problem.count() if limit is None else min(int(limit), problem.count())
    planned = range(int(config.shard), count, int(config.shards))
    before = folder.mend()
    done = [decision["index"] for decision in before]
    if done != list(planned[: len(done)]):
        raise UserError(
            "decisions.jsonl holds other situations than this run decides for",
            str(folder.path),
            "Choose another out=",
        )
    if learn and any("answer" not in decision for decision in before):
        raise UserError(
            "decisions.jsonl holds decisions without answers to learn from",
            str(folder.path),
            "Choose another out=",
        )
    with told("deciding"):
        made = rounds(
            problem,
            surrogate,
            method.objective,
            method.search,
            planned,
            certify=method.certify,
            seed=int(config.seed),
            learn=learn,
            trainer=again(config) if learn else None,
            workers=1 if learn else processes(config.workers, sweep),
            begin=len(done),
            answers=[answered(decision) for decision in before] if learn else (),
        )
        for _ in watched(folder.record(made), len(done), len(planned), None if sweep else Trials(before)):
            pass
    return len(planned)


def learning(config: DictConfig, problem: "Problem") -> bool:
    """Whether rounds learn from each other.

    Raises:
        UserError: if they are to and cannot.
    """
    from rehearsal_torch.problems.problem import World

    if not isinstance(config.learn, bool):
        raise UserError(f"expected true or false; got {config.learn}", "learn")
    if not config.learn:
        return False
    if not isinstance(problem, World):
        raise UserError(
            f"{type(problem).__name__} does not answer, so that there is nothing to learn from",
            "learn=true",
            "Choose a dataset that is a world",
        )
    if int(config.shards) > 1:
        raise UserError(
            "each round that learns needs those before it",
            "shards",
            "Leave shards out, and spread repeats over seeds instead: -m seed=0,1,2",
        )
    return True


def again(config: DictConfig) -> "Descent | None":
    """How parts without a solution of their own are fitted again; nothing is kept of it, since every round
    trains anew.
    """
    return build(config, "trainer", folder=None) if "_target_" in config.trainer else None


def processes(workers: int | None, sweep: bool) -> int:
    """How many processes decide: as told, else all cores that this process may use; one in a sweep, whose
    jobs share the cores already.
    """
    if workers is not None:
        return int(workers)
    if sweep:
        return 1
    from joblib import cpu_count

    return cpu_count()


def watched(rounds: Iterator[Round], done: int, total: int, trials: Trials | None = None) -> Iterator[Round]:
    """Passes rounds on; shows a bar on a terminal, a plain line for each tenth elsewhere. Where the world
    answers, both count the successes.

    With `trials`, these are told round by round: action, observed reward, best expected reward so far,
    seconds.
    """
    console, wins, asked = Console(), 0, 0

    def so_far(each: Round) -> str:
        nonlocal wins, asked
        if each.success is None:
            return ""
        wins, asked = wins + each.success, asked + 1
        return f", {wins} successes in {asked} rounds"

    if not console.is_terminal:
        began = time.perf_counter()
        for number, each in enumerate(rounds, done + 1):
            said = so_far(each)
            if each.reward is not None and trials is not None:
                print(trials.told(each, total), flush=True)
            elif number == total or number * 10 // total > (number - 1) * 10 // total:
                print(f"decided {number} of {total}, {time.perf_counter() - began:.1f} s{said}", flush=True)
            yield each
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("deciding", total=total, completed=done)
        for each in rounds:
            if each.reward is not None and trials is not None:
                bar.console.print(trials.told(each, total), highlight=False, markup=False)
            bar.update(task, advance=1, description=f"deciding{so_far(each)}")
            yield each
