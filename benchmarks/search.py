"""Process time of the search for counterfactually optimal action sequences, in seconds per episode on one
core.

On the same held-out patients of the simulated cohort, under the model of a checkpoint:

    same question     T = 12, |A| = 25, k = 3: branch and bound, A* (fast form), greedy changes, and batched
                      enumeration (the fastest exact reference that the project has); values are compared, and
                      the ratio to enumeration is taken episode by episode
    many              the same question for many episodes, one after the other
    reach             longer horizons and more changes, branch and bound alone, under a time limit
    scores            the same question, and the reach, for a reward that is not linear: the SOFA score of the
                      organs, under one model of the ensemble and under all

Medians have 95% percentile-bootstrap intervals over episodes. Every method runs once before it is measured.

Run: python benchmarks/search.py [--checkpoint tests/fixtures/sepsis_published] [--scored checkpoints/sepsis]
[--episodes 20] [--many 200] [--limit 30] [--parts same_question,many,reach,scores] [--out DIR] Writes
DIR/search.csv with one row per episode and method.
"""

import argparse
import csv
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
import yaml
from scipy.stats import bootstrap

from rehearsal_torch.checkpoint import load
from rehearsal_torch.data.decision import Decision
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.objectives.step_reward import LinearReward, Reward
from rehearsal_torch.objectives.task_reward import StepScore
from rehearsal_torch.problems.sequences.sepsis_cohort import LONGEST, SepsisSimulated
from rehearsal_torch.search.search import Search
from rehearsal_torch.search.sequences.astar import AStar
from rehearsal_torch.search.sequences.baselines import GreedyChanges
from rehearsal_torch.search.sequences.branch_and_bound import BranchAndBound
from rehearsal_torch.search.sequences.exhaustive import Exhaustive
from rehearsal_torch.surrogates.surrogate import EpisodeSurrogate
from rehearsal_torch.surrogates.transition_ensemble import TransitionEnsemble

FIELDS = (
    "method",
    "T",
    "k",
    "episode",
    "seconds",
    "value",
    "observed",
    "gap",
    "proven",
    "fallback",
    "expanded",
    "generated",
    "network_evaluations",
)
REACH = ((12, 4), (12, 5), (20, 3), (20, 4), (20, 5), (20, 6), (30, 8), (40, 8))
REACH_OF_SCORES = ((12, 4), (20, 3), (20, 4))
PARTS = ("same_question", "many", "reach", "scores")
Row = dict[str, object]


def questions(
    model: EpisodeSurrogate, horizon: int, changes: int, count: int, reward: Reward | None = None
) -> list[CounterfactualReturn]:
    """The first `count` test patients with enough time steps; the reward is minus SOFA by default. Beyond 20
    steps they are those of a cohort that is simulated for longer.
    """
    cohort = SepsisSimulated(horizon=horizon, limit=count, longest=max(LONGEST, horizon))
    asked = reward or LinearReward()
    return [
        CounterfactualReturn(model, cohort.case(index), asked, changes) for index in range(cohort.count())
    ]


def organs() -> StepScore:
    """Minus the SOFA score without the points of the doses."""
    path = Path(__file__).parents[1] / "conf" / "reward" / "sofa_score.yaml"
    settings = yaml.safe_load(path.read_text(encoding="utf-8"))
    return StepScore(settings["components"], settings["doses"], without_doses=True)


def measured(
    method: str, search: Search[CounterfactualReturn], objectives: Sequence[CounterfactualReturn]
) -> list[Row]:
    """One row per episode."""
    search(objectives[0])
    rows = []
    for objective in objectives:
        began = time.process_time()
        decision = search(objective)
        rows.append(row(method, objective, decision, time.process_time() - began))
    return rows


def row(method: str, objective: CounterfactualReturn, decision: Decision, seconds: float) -> Row:
    """The record of one search."""
    trace = decision.trace
    kept = {name: trace.get(name) for name in FIELDS if name in trace}
    if decision.baseline is not None:
        kept["observed"] = decision.baseline.point
    found = {
        "method": method,
        "T": objective.horizon,
        "k": objective.changes,
        "episode": objective.case.identity,
    }
    return {**kept, **found, "seconds": seconds, "value": decision.value, "fallback": trace.get("fallback")}


def median(values: Sequence[float]) -> str:
    """Median and interval."""
    if len(values) < 2 or len(set(values)) == 1:
        return f"{np.median(values):.3g}"
    interval = bootstrap(
        (np.asarray(values),), np.median, method="percentile", rng=np.random.default_rng(0)
    ).confidence_interval
    return f"{np.median(values):.3g} [{interval.low:.3g}, {interval.high:.3g}]"


def seconds(rows: Sequence[Row]) -> list[float]:
    """Process seconds of the rows."""
    return [float(str(row["seconds"])) for row in rows]


def gains(rows: Sequence[Row]) -> list[float]:
    """Gains of the rows' decisions over the observed actions."""
    return [float(str(row["value"])) - float(str(row["observed"])) for row in rows]


def same_question(model: EpisodeSurrogate, count: int) -> list[Row]:
    """T = 12, k = 3, by all methods."""
    objectives = questions(model, 12, 3, count)
    methods: dict[str, Search[CounterfactualReturn]] = {
        "branch_and_bound": BranchAndBound(),
        "astar": AStar(),
        "greedy_changes": GreedyChanges(),
        "exhaustive": Exhaustive(),
    }
    print(f"\nT = 12, |A| = 25, k = 3, {len(objectives)} episodes")
    return compared(methods, objectives)


def compared(
    methods: dict[str, Search[CounterfactualReturn]], objectives: Sequence[CounterfactualReturn]
) -> list[Row]:
    """All methods; the last one is the reference."""
    rows = {method: measured(method, search, objectives) for method, search in methods.items()}
    last = list(methods)[-1]
    truth, reference = gains(rows[last]), seconds(rows[last])
    print(
        f"{'method':22}{'seconds per episode':28}{'speed-up over enumeration':34}{'optimal':12}network "
        "evaluations"
    )
    for method, found in rows.items():
        ratios = [whole / own for whole, own in zip(reference, seconds(found), strict=True)]
        # Equal means equal up to rounding.
        equal = sum(abs(own - best) <= 1e-6 for own, best in zip(gains(found), truth, strict=True))
        evaluations = np.median([float(str(row["network_evaluations"])) for row in found])
        print(
            f"{method:22}{median(seconds(found)):28}{median(ratios):34}"
            f"{f'{equal} of {len(found)}':12}{evaluations:,.0f}"
        )
    return [row for found in rows.values() for row in found]


def many(model: EpisodeSurrogate, count: int) -> list[Row]:
    """The same question for many episodes."""
    rows = measured("branch_and_bound (many)", BranchAndBound(), questions(model, 12, 3, count))
    spent = seconds(rows)
    proven = sum(bool(row["proven"]) for row in rows)
    print(
        f"\n{len(rows)} episodes by branch and bound: {sum(spent):.1f} s on one core, maximum "
        f"{max(spent):.2f} s, {proven} proven"
    )
    return rows


def scores(model: EpisodeSurrogate, count: int, limit: float) -> list[Row]:
    """T = 12, k = 3, then the reach, for a step score."""
    objectives = questions(model, 12, 3, count, organs())
    methods: dict[str, Search[CounterfactualReturn]] = {
        "branch_and_bound": BranchAndBound(),
        "greedy_changes": GreedyChanges(),
        "exhaustive": Exhaustive(),
    }
    print(f"\nstep score, {model.members} models, T = 12, |A| = 25, k = 3, {len(objectives)} episodes")
    rows = compared(methods, objectives)
    rows += reach(model, count, limit, REACH_OF_SCORES, organs())
    return [{**row, "method": f"{row['method']} (score, {model.members} models)"} for row in rows]


def reach(
    model: EpisodeSurrogate,
    count: int,
    limit: float,
    asked: Sequence[tuple[int, int]] = REACH,
    reward: Reward | None = None,
) -> list[Row]:
    """Longer horizons and more changes."""
    print(f"\nbranch and bound, |A| = 25, {count} episodes, at most {limit:g} s each")
    print(
        f"{'T':>3}{'k':>3}  {'seconds per episode':28}{'maximum':10}{'proven':12}{'gap / gain':12}"
        "largest gap left"
    )
    everything = []
    for horizon, changes in asked:
        objectives = questions(model, horizon, changes, count, reward)
        rows = measured("branch_and_bound", BranchAndBound(budget_s=limit), objectives)
        proven = f"{sum(bool(row['proven']) for row in rows)} of {len(rows)}"
        gaps = [float(str(row["gap"])) for row in rows]
        # A gap without a gain counts as infinite.
        share = [
            gap / gain if gain > 0 else np.inf if gap else 0.0
            for gap, gain in zip(gaps, gains(rows), strict=True)
        ]
        print(
            f"{horizon:3}{changes:3}  {median(seconds(rows)):28}{max(seconds(rows)):<10.3g}{proven:12}"
            f"{np.median(share):<12.3g}{max(gaps):.3g}"
        )
        everything += rows
    return everything


def loaded(path: str) -> EpisodeSurrogate:
    """The model of a checkpoint."""
    model = load(path)
    if not isinstance(model, EpisodeSurrogate):
        raise SystemExit(f"{path} holds a {type(model).__name__}; expected a model of episodes")
    return model


def main() -> None:
    """Runs all parts and writes the rows."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--checkpoint", default="tests/fixtures/sepsis_published")
    parser.add_argument("--scored", default="checkpoints/sepsis", help="the checkpoint of the part scores")
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--episodes", type=int, default=20)
    parser.add_argument("--many", type=int, default=200)
    parser.add_argument("--limit", type=float, default=30.0)
    parser.add_argument("--out", type=Path, default=Path("runs/benchmarks"))
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    parts, model = set(chosen.parts.split(",")), loaded(chosen.checkpoint)
    if not parts <= set(PARTS):
        raise SystemExit(f"--parts: expected some of {', '.join(PARTS)}; got {chosen.parts}")
    print(f"model {chosen.checkpoint}, torch {torch.__version__}, one thread, process seconds")
    rows = same_question(model, chosen.episodes) if "same_question" in parts else []
    rows += many(model, chosen.many) if "many" in parts else []
    rows += reach(model, chosen.episodes, chosen.limit) if "reach" in parts else []
    if "scores" in parts:
        scored = loaded(chosen.scored)
        single = [scored.first] if isinstance(scored, TransitionEnsemble) else []
        for each in (*single, scored):
            rows += scores(each, chosen.episodes, chosen.limit)
    chosen.out.mkdir(parents=True, exist_ok=True)
    path = chosen.out / "search.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        writer.writerows(rows)
    print(f"\nrows: {path}")


if __name__ == "__main__":
    main()
