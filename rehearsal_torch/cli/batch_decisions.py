"""Decisions for all cases of a run: shards, processes, resumption and progress lines.

Batch b of the cases belongs to shard b mod N: a search's result in a case may depend, in the last digits, on
the other cases of its batch, so that shards hold the batches of the whole run. Most searches have batches of
one case. An interrupted run is resumed after its last complete line. The lines depend neither on processes,
nor on shards, nor on interruptions. An online run (learn=true) uses one process and one shard; when it is
resumed, the surrogate is first refitted to the recorded responses.
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
        """A round's action, reward, best expected reward so far, if known, and seconds."""
        now = time.perf_counter()
        elapsed, self._before = now - self._before, now
        setting = trial.decision.to_dict()["alteration"] or {}
        action = ", ".join(f"{name} {_short_setting(value)}" for name, value in setting.items())
        best = ""
        if {"expected", "start", "optimum"} <= set(trial.score):
            self._best = max(self._best, trial.score["expected"], trial.score["start"])
            best = f", best expected {self._best:.4g} of {trial.score['optimum']:.4g}"
        return f"{action}; reward {trial.reward:.4g}{best}, {elapsed:.2f} s"


def _short_setting(value: float | list[float]) -> str:
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
    """The rounds of a run (`decision_loop.rounds`), after all random states have been seeded."""
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
    """Decides for the undecided cases, of all shards at most `limit`; returns the number in the folder."""
    count = run.problem.count() if limit is None else min(int(limit), run.problem.count())
    planned = of_shard(count, run.search, int(run.config["shard"]), int(run.config["shards"]))
    earlier = folder.mend()
    decided = [decision["index"] for decision in earlier]
    fault = ""
    if decided != planned[: len(decided)]:
        fault = "other cases than those of this run"
    elif run.learn and any("answer" not in decision for decision in earlier):
        fault = "decisions without the world's responses, which an online run needs"
    if fault:
        raise UserError(f"decisions.jsonl holds {fault}", str(folder.path), "Choose another out=")
    log = teller(run.config, sweep)
    claims: Claims | None = None
    if planned:
        # Within the sharing of a command, these are the command's workers.
        with sharing(run.config, run.learn, sweep, log) if _cross_fits(run) else nullcontext(1) as workers:
            claims = claimed(run, folder, log, workers)
    graphs = run.config.get("graphs")
    if graphs is None and not run.learn and "task" in run.config.get("surrogate", {}):
        graphs = run.problem.facts().graphs
    claims = judged_by_graphs(run, surrogate, graphs, claims, log) if planned else None
    claims = claims if choice is None else replace(choice, claims=claims)
    context = sharing(run.config, run.learn, sweep, log) if len(decided) < len(planned) else nullcontext(1)
    with as_user_error("deciding"), context as workers:
        new_rounds = played(
            run,
            surrogate,
            planned,
            claims=claims,
            begin=len(decided),
            answers=[answered(decision) for decision in earlier] if run.learn else (),
            earlier=[decision_of(decision) for decision in earlier] if run.learn else (),
            workers=workers,
        )
        trials = None if sweep else Trials(earlier)
        flags = {key: asked(run.config, key) for key in ("tables", "quiet")}
        for _ in watched(folder.record(new_rounds), len(decided), len(planned), trials, **flags):
            pass
    return len(planned)


def of_shard(count: int, search: Search[Any], shard: int, shards: int) -> list[int]:
    """The cases of a shard, in order: every N-th batch of the search."""
    size = search.batch_size if isinstance(search, BatchSearch) else 1
    firsts = range(shard * size, count, shards * size)
    return [index for first in firsts for index in range(first, min(first + size, count))]


def _cross_fits(run: Run) -> bool:
    """Whether claims are cross-fitted."""
    return run.config.get("claims", "in_sample") == "cross_fitted"


def claimed(run: Run, folder: RunFolder, told: Told = None, workers: int = 1) -> CrossFittedClaims | None:
    """The claims that the configuration names: None for the method's own. Cross-fitted ones are also written:
    ``claims.json`` with the optimism of the choice, and ``untouched.csv`` with each row's prediction under no
    action, by a model that has not seen the row.
    """
    if not _cross_fits(run):
        return None
    claims = cross_fitted_claims(run, told, workers)
    facts = {"folds": len(claims.folds), "optimism": claims.optimism, "error": claims.error}
    folder.write_json("claims.json", facts)
    if claims.untouched is not None:
        folder.write("untouched.csv", _csv_of(claims.untouched, run.problem.facts().units))
    return claims


def _csv_of(predictions: Untouched, units: Sequence[str] | None) -> str:
    """Predictions under no action as CSV, with the number of each row's unit."""
    unit_numbers = {} if units is None else {unit: number for number, unit in enumerate(dict.fromkeys(units))}
    text = io.StringIO()
    csv_writer = csv.writer(text, lineterminator="\n")
    csv_writer.writerow(("unit", "desired", "predicted", "constant"))
    columns = (predictions.rows, predictions.desired, predictions.predicted, predictions.constant)
    for row, desired, predicted, constant in zip(*(column.tolist() for column in columns), strict=True):
        unit = row if units is None else unit_numbers[units[row]]
        csv_writer.writerow((unit, f"{desired:g}", f"{predicted:.6g}", f"{constant:.6g}"))
    return text.getvalue()


def teller(config: Mapping[str, Any] | DictConfig, sweep: bool) -> Told:
    """A function that prints lines of progress to the standard error; None in a sweep, or a quiet run."""
    return None if sweep or config.get("quiet", False) else partial(print, file=sys.stderr, flush=True)


@contextmanager
def sharing(config: Mapping[str, Any] | DictConfig, learn: bool, sweep: bool, told: Told) -> Iterator[int]:
    """The number of processes that share fits and rounds within the context: those of this machine, or the
    workers of a Dask cluster (``parallel=dask``), of an outer such context if there is one.
    """
    requested = config["workers"]
    if config.get("parallel", "local") == "local":
        yield 1 if learn else processes(requested, sweep)
        return
    if learn:
        raise nothing_to_share()
    from rehearsal_torch.dask_cluster import ClusterError, connected, named_cluster

    address = config["dask"]["address"]
    # With workers=1 a loop computes in this process: a cluster gets at least two tasks at a time.
    limit = sys.maxsize if address is not None and requested is None else max(2, processes(requested, sweep))
    try:
        nested = named_cluster() is not None
        with nullcontext() if nested else connected(address, processes(requested, sweep), told):
            yield limit
    except ClusterError as error:
        raise UserError(
            str(error),
            "parallel=dask",
            "Decisions that were made are kept: continue with resume=FOLDER, and name the cluster again, "
            "which is never taken from a folder",
        ) from error


def processes(workers: int | None, sweep: bool) -> int:
    """The number of processes: `workers`, else 1 in a sweep, whose jobs share the cores, else all cores."""
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
    """Yields the rounds, after `done` earlier ones, with a line of progress, or one for each trial."""
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
