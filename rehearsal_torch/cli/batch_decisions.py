"""Deciding for many situations: which, by how many processes, and written as they come.

Situation i belongs to shard i mod N. A run that was interrupted goes on behind its last whole line. Neither
the number of processes, nor shards, nor interruptions change a line. A run that learns (learn=true) is one
process and one shard; taken up again, it learns first from the answers that its lines recorded.

Trials on a terminal: a line a round.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from rehearsal_torch.cli.build import seed_and_use_one_thread
from rehearsal_torch.cli.errors import UserError, as_user_error
from rehearsal_torch.cli.run import Method, Run, learning, method_of, suits
from rehearsal_torch.round_line import Round, answered
from rehearsal_torch.run_folder import RunFolder

if TYPE_CHECKING:
    from rehearsal_torch.data.table import Table
    from rehearsal_torch.surrogates.surrogate import Surrogate


__all__ = [
    "Method",
    "Trials",
    "decide",
    "learning",
    "method_of",
    "played",
    "processes",
    "suits",
    "watched",
]


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

    def as_user_error(self, each: Round, total: int) -> str:
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


def played(
    run: Run,
    surrogate: "Surrogate",
    indices: Sequence[int] | None = None,
    *,
    begin: int = 0,
    answers: "Sequence[Table]" = (),
    workers: int = 1,
) -> Iterator[Round]:
    """The rounds of a run, after everything random has been seeded anew.

    Args:
        run: What to decide by.
        surrogate: What has been learnt; refitted in place where rounds learn from each other.
        indices: Which situations; None for all.
        begin: Leaves out the first so many of them.
        answers: Of the rounds that are left out, where rounds learn from each other.
        workers: Processes that share the rounds.
    """
    from rehearsal_torch.loop import rounds

    seed_and_use_one_thread(run.seed)
    return rounds(
        run.problem,
        surrogate,
        run.objective,
        run.search,
        indices,
        certify=run.certificate,
        seed=run.seed,
        learn=run.learn,
        trainer=run.trainer(None) if run.learn else None,
        workers=workers,
        begin=begin,
        answers=answers,
    )


def decide(
    run: Run, folder: RunFolder, surrogate: "Surrogate", *, limit: int | None = None, sweep: bool = False
) -> int:
    """Decides for the situations of a run that are still undecided.

    Args:
        run: What to decide by, and where situations come from.
        folder: Where decisions are written.
        surrogate: What has been learnt.
        limit: At most so many situations of all shards together; None for all.
        sweep: Whether other jobs run beside this one.

    Returns:
        How many decisions the folder holds now.

    Raises:
        UserError: if the folder holds decisions for other situations.
    """
    total = run.problem.count()
    count = total if limit is None else min(int(limit), total)
    planned = range(int(run.config["shard"]), count, int(run.config["shards"]))
    before = folder.mend()
    done = [decision["index"] for decision in before]
    if done != list(planned[: len(done)]):
        raise UserError(
            "decisions.jsonl holds other situations than this run decides for",
            str(folder.path),
            "Choose another out=",
        )
    if run.learn and any("answer" not in decision for decision in before):
        raise UserError(
            "decisions.jsonl holds decisions without answers to learn from",
            str(folder.path),
            "Choose another out=",
        )
    with as_user_error("deciding"):
        made = played(
            run,
            surrogate,
            planned,
            begin=len(done),
            answers=[answered(decision) for decision in before] if run.learn else (),
            workers=1 if run.learn else processes(run.config["workers"], sweep),
        )
        for _ in watched(folder.record(made), len(done), len(planned), None if sweep else Trials(before)):
            pass
    return len(planned)


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
            so_far_text = so_far(each)
            if each.reward is not None and trials is not None:
                print(trials.as_user_error(each, total), flush=True)
            elif number == total or number * 10 // total > (number - 1) * 10 // total:
                print(
                    f"decided {number} of {total}, {time.perf_counter() - began:.1f} s{so_far_text}",
                    flush=True,
                )
            yield each
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("deciding", total=total, completed=done)
        for each in rounds:
            if each.reward is not None and trials is not None:
                bar.console.print(trials.as_user_error(each, total), highlight=False, markup=False)
            bar.update(task, advance=1, description=f"deciding{so_far(each)}")
            yield each
