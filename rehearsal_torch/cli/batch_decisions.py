"""Decisions for all cases of a run: shards, processes, resumption and progress lines.

The processes are those of this machine, or the workers of a Dask cluster. Batch b of the cases belongs to
shard b mod N: what a search finds in a case may depend, in the last digits, on the cases that are searched
together with it, so that shards hold the batches of the whole run. Most searches take one case at a time;
then case i belongs to shard i mod N. An interrupted run is resumed after its last complete line. The lines
depend neither on the processes, nor on shards, nor on interruptions. An online run (learn=true) uses one
process and one shard; when it is resumed, the surrogate is first refitted to the recorded responses. The
progress is one line, for trials with what came of the last one.
"""

import csv
import io
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

from omegaconf import DictConfig

from rehearsal_torch.claims.abstention_rules import Claims
from rehearsal_torch.claims.cross_fitting import CrossFittedClaims
from rehearsal_torch.claims.rows_as_cases import Untouched
from rehearsal_torch.cli.configuration_keys import nothing_to_share
from rehearsal_torch.cli.run_summary import asked
from rehearsal_torch.data.decision import Decision
from rehearsal_torch.data.table import Table
from rehearsal_torch.decision_loop import rounds
from rehearsal_torch.methods.instantiate import seed_and_use_one_thread
from rehearsal_torch.methods.method_choice import Noted
from rehearsal_torch.methods.run_parts import Run, cross_fitted_claims, judged_by_graphs
from rehearsal_torch.progress import Progress
from rehearsal_torch.round_record import Round, answered, decision_of
from rehearsal_torch.run_folder import RunFolder
from rehearsal_torch.search.search import BatchSearch, Search
from rehearsal_torch.spaces.box import setting_text
from rehearsal_torch.surrogates.surrogate import Surrogate
from rehearsal_torch.user_error import UserError, as_user_error

Told = Callable[[str], None] | None


class Trials:
    """Progress lines of trials, with the best expected reward so far."""

    def __init__(self, before: Sequence[Mapping[str, Any]] = ()) -> None:
        self._best = max(
            (line["score"]["expected"] for line in before if "expected" in (line.get("score") or {})),
            default=float("-inf"),
        )
        self._before = time.perf_counter()

    def note(self, trial: Round) -> str:
        """What came of a round: action, observed reward, the best expected reward so far if the world
        provides it, and the seconds since the previous note.
        """
        now = time.perf_counter()
        spent, self._before = now - self._before, now
        setting = trial.decision.to_dict()["alteration"] or {}
        action = ", ".join(f"{name} {_short(value)}" for name, value in setting.items())
        known = ""
        if {"expected", "start", "optimum"} <= set(trial.score):
            self._best = max(self._best, trial.score["expected"], trial.score["start"])
            known = f", best expected {self._best:.4g} of {trial.score['optimum']:.4g}"
        return f"{action}; reward {trial.reward:.4g}{known}, {spent:.2f} s"


def _short(value: float | list[float]) -> str:
    return "/".join(setting_text(item, 3) for item in (value if isinstance(value, list) else [value]))


def played(
    run: Run,
    surrogate: Surrogate,
    indices: Sequence[int] | None = None,
    *,
    claims: Claims | None = None,
    begin: int = 0,
    answers: Sequence[Table] = (),
    earlier: Sequence[Decision] = (),
    workers: int = 1,
) -> Iterator[Round]:
    """The rounds of a run, after all random states have been seeded, without the first `begin` ones, whose
    `answers`, and decisions, an online run needs. An online run refits the surrogate in place. None stands
    for all cases, and for the claims of the method.
    """
    seed_and_use_one_thread(run.seed)
    return rounds(
        run.problem,
        surrogate,
        run.objective,
        run.search,
        indices,
        certify=run.certify,
        claims=claims,
        seed=run.seed,
        learn=run.learn,
        trainer=run.trainer(None) if run.learn else None,
        workers=workers,
        begin=begin,
        answers=answers,
        earlier=earlier,
    )


def decide(
    run: Run,
    folder: RunFolder,
    surrogate: Surrogate,
    *,
    limit: int | None = None,
    sweep: bool = False,
    choice: Noted | None = None,
) -> int:
    """Decides for the cases of a run that are still undecided, of all shards at most `limit`; returns the
    number of decisions in the folder. `choice` is what they say of the choice of the method.
    """
    total = run.problem.count()
    count = total if limit is None else min(int(limit), total)
    planned = of_shard(count, run.search, int(run.config["shard"]), int(run.config["shards"]))
    before = folder.mend()
    done = [decision["index"] for decision in before]
    wrong = ""
    if done != planned[: len(done)]:
        wrong = "other cases than those of this run"
    elif run.learn and any("answer" not in decision for decision in before):
        wrong = "decisions without the world's responses, which an online run needs"
    if wrong:
        raise UserError(f"decisions.jsonl holds {wrong}", str(folder.path), "Choose another out=")
    told = teller(run.config, sweep)
    claims: Claims | None = None
    if planned:
        # Within the sharing of a command, these are its workers.
        with sharing(run.config, run.learn, sweep, told) if _claims(run) else nullcontext(1) as workers:
            claims = claimed(run, folder, told, workers)
    graphs = run.config.get("graphs")
    if graphs is None and not run.learn and "task" in run.config.get("surrogate", {}):
        graphs = run.problem.facts().graphs
    claims = judged_by_graphs(run, surrogate, graphs, claims, told) if planned else None
    claims = claims if choice is None else replace(choice, claims=claims)
    shared = sharing(run.config, run.learn, sweep, told) if len(done) < len(planned) else nullcontext(1)
    with as_user_error("deciding"), shared as workers:
        made = played(
            run,
            surrogate,
            planned,
            claims=claims,
            begin=len(done),
            answers=[answered(decision) for decision in before] if run.learn else (),
            earlier=[decision_of(decision) for decision in before] if run.learn else (),
            workers=workers,
        )
        trials = None if sweep else Trials(before)
        how = {key: asked(run.config, key) for key in ("tables", "quiet")}
        for _ in watched(folder.record(made), len(done), len(planned), trials, **how):
            pass
    return len(planned)


def of_shard(count: int, search: Search[Any], shard: int, shards: int) -> list[int]:
    """The cases of a shard, in order: every N-th batch of the search, from the shard's own on."""
    size = search.batch_size if isinstance(search, BatchSearch) else 1
    firsts = range(shard * size, count, shards * size)
    return [index for first in firsts for index in range(first, min(first + size, count))]


def _claims(run: Run) -> bool:
    """Whether claims are cross-fitted."""
    return run.config.get("claims", "in_sample") == "cross_fitted"


def claimed(run: Run, folder: RunFolder, told: Told = None, workers: int = 1) -> CrossFittedClaims | None:
    """The claims that the configuration names: None for the method's own; cross-fitted ones are also written
    into the run folder: ``claims.json`` with the optimism of the choice, and ``untouched.csv`` with the
    prediction under no action for each row, by a model that has not seen it.
    """
    if not _claims(run):
        return None
    claims = cross_fitted_claims(run, told, workers)
    facts = {"folds": len(claims.folds), "optimism": claims.optimism, "error": claims.error}
    folder.write_json("claims.json", facts)
    if claims.untouched is not None:
        folder.write("untouched.csv", _written(claims.untouched, run.problem.facts().units))
    return claims


def _written(untouched: Untouched, units: Sequence[str] | None) -> str:
    """The untouched rows as CSV, with the number of each unit; a row without a unit is its own."""
    numbers = {} if units is None else {unit: place for place, unit in enumerate(dict.fromkeys(units))}
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(("unit", "desired", "predicted", "constant"))
    columns = (untouched.rows, untouched.desired, untouched.predicted, untouched.constant)
    for row, desired, predicted, constant in zip(*(column.tolist() for column in columns), strict=True):
        unit = row if units is None else numbers[units[row]]
        lines.writerow((unit, f"{desired:g}", f"{predicted:.6g}", f"{constant:.6g}"))
    return text.getvalue()


def teller(config: Mapping[str, Any] | DictConfig, sweep: bool) -> Told:
    """Prints lines of progress to the standard error; None for a job of a sweep, or a quiet run."""
    return None if sweep or config.get("quiet", False) else partial(print, file=sys.stderr, flush=True)


@contextmanager
def sharing(config: Mapping[str, Any] | DictConfig, learn: bool, sweep: bool, told: Told) -> Iterator[int]:
    """The number of processes that share fits and rounds, which are there as long as the context: those of
    this machine, or the workers of a Dask cluster (``parallel=dask``). Within such a context, its cluster.
    """
    asked_for = config["workers"]
    if config.get("parallel", "local") == "local":
        yield 1 if learn else processes(asked_for, sweep)
        return
    if learn:
        raise nothing_to_share()
    from rehearsal_torch.dask_cluster import ClusterError, connected, named_cluster

    address = config["dask"]["address"]
    # One worker of a cluster is not this process, which a loop with one worker would take: two tasks are
    # with the cluster at least, one of which waits where it has one worker.
    most = sys.maxsize if address is not None and asked_for is None else max(2, processes(asked_for, sweep))
    try:
        there = named_cluster() is not None
        with nullcontext() if there else connected(address, processes(asked_for, sweep), told):
            yield most
    except ClusterError as error:
        raise UserError(
            str(error),
            "parallel=dask",
            "Decisions that were made are kept: continue with resume=FOLDER, and name the cluster again, "
            "which is never taken from a folder",
        ) from error


def processes(workers: int | None, sweep: bool) -> int:
    """The number of processes: `workers` if given, else all cores available to this process, or one in a
    sweep, whose jobs share the cores already.
    """
    if workers is not None:
        return int(workers)
    if sweep:
        return 1
    from joblib import cpu_count

    return cpu_count()


def watched(
    rounds: Iterator[Round],
    done: int,
    total: int,
    trials: Trials | None = None,
    *,
    tables: bool = False,
    quiet: bool = False,
) -> Iterator[Round]:
    """Yields the rounds, `done` of which were made before, and shows progress while they last, with `tables`
    a line for each of the `trials`; at the end, one line says how many rounds there were.
    """
    wins, judged, began, number = 0, 0, time.perf_counter(), done
    with Progress("deciding", total, done, quiet=quiet) as line:
        for number, current in enumerate(rounds, done + 1):
            note = ""
            if current.success is not None:
                wins, judged = wins + current.success, judged + 1
                note = f"{wins} successes in {judged} rounds"
            if current.reward is not None and trials is not None:
                note = trials.note(current)
                if tables:
                    line.aside(f"round {current.index + 1} of {total}: {note}")
            line.at(number, note)
            yield current
    if not quiet and number > done:
        successes = f", {wins} successes in {judged} rounds" if judged else ""
        print(f"decided {number} of {total}, {time.perf_counter() - began:.1f} s{successes}", flush=True)
