"""The results of the paper on the simulated cohort, in stages that can be stopped and taken up again.

    lipschitz samples changes anchors   episodes.csv, a row for each episode and search (Fig. 2, 3 and 5)
    truth                               truth.csv, what the known law says of the recommended sequences
    grid                                lipschitz_grid.csv, held-out log-likelihood over L_h and L_phi (Fig.
                                        6)
    figures                             figures/*.png and *.svg, README.md with the numbers behind them

Source: Tsirtsis and Gomez-Rodriguez (2023), Sec. 5, App. F and G.
"""

import argparse
import csv
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from rehearsal_torch.cli.build import plain, problem_of, seed_and_use_one_thread
from rehearsal_torch.cli.errors import UserError
from rehearsal_torch.cli.installation import conf_folder
from rehearsal_torch.cli.spelling import spoken
from rehearsal_torch.data.decision import Decision, EpisodeCase
from rehearsal_torch.data.table import Table
from rehearsal_torch.evaluation.truth_panel import truth_rows
from rehearsal_torch.files.rows import read_rows
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn, LinearReward
from rehearsal_torch.problems.episodes.cohort import SepsisSimulated
from rehearsal_torch.reporting.figures import lipschitz_grid, truth_errors
from rehearsal_torch.reporting.figures import patient_trajectory as patient_trajectory
from rehearsal_torch.reporting.style import drawing, save, wording
from rehearsal_torch.run_folder import RunFolder
from rehearsal_torch.studies.command import ended, note, say
from rehearsal_torch.studies.committed import caution_of_run
from rehearsal_torch.studies.models import configured, fingerprints, models
from rehearsal_torch.studies.sepsis import figures as sepsis_figures
from rehearsal_torch.studies.sepsis.episode_rows import Case, EpisodeRows
from rehearsal_torch.studies.sepsis.lipschitz_study import Validated, decreases, grid
from rehearsal_torch.studies.sepsis.study import BOUND, HORIZON, LIMIT, USUAL, planned, search, tasks
from rehearsal_torch.studies.workers import shared
from rehearsal_torch.surrogates.transition import TransitionModel

SEARCHES, STAGES = (
    ("lipschitz", "samples", "changes", "anchors"),
    ("lipschitz", "samples", "changes", "anchors", "truth", "grid", "figures"),
)
REWARD = {"SOFA": -1.0}


@dataclass(frozen=True)
class Study:
    """What every search of the study needs.

    Attributes:
        decision_cases: The episodes.
        models: L_h to the model.
        pool: Training transitions.
        problem: Who knows the truth.
        limit: Seconds an episode may take.
    """

    decision_cases: Sequence[EpisodeCase]
    models: dict[float, TransitionModel]
    pool: Table
    problem: SepsisSimulated
    limit: float


def solved(study: Study, task: tuple[int, Case]) -> dict[str, object]:
    """The row of one episode and case."""
    decision_case, case = study.decision_cases[task[0]], task[1]
    return case.row(decision_case.identity, _decide(study, decision_case, case))


def judged(study: Study, task: tuple[int, Case]) -> list[dict[str, object]]:
    """What the truth says of one episode's recommended sequence; the true optimum is enumerated up to k =
    2.
    """
    decision_case, case = study.decision_cases[task[0]], task[1]
    decision = _decide(study, decision_case, case)
    return [
        {"k": case.changes, **asdict(row)}
        for row in truth_rows(
            study.models[case.constant], study.problem, [(decision_case, decision)], case.changes, 2
        )
    ]


def _decide(study: Study, decision_case: EpisodeCase, case: Case) -> Decision:
    return search(case, study.pool, study.limit)(_objective(study, decision_case, case))


def _objective(study: Study, decision_case: EpisodeCase, case: Case) -> CounterfactualReturn:
    return CounterfactualReturn(
        study.models[case.constant], decision_case, LinearReward(REWARD), case.changes
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the stages asked for; see ``--help``."""
    return ended(_run, _parser().parse_args(arguments), arguments)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=spoken("reproduce_sepsis"),
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--stages",
        nargs="+",
        choices=STAGES,
        default=list(STAGES),
        metavar="STAGE",
        help=f"any of {' '.join(STAGES)} (default: all)",
    )
    parser.add_argument(
        "--episodes",
        type=int,
        default=200,
        help="how many patients (default: 200); slow searches take a share of them",
    )
    parser.add_argument(
        "--budget-minutes",
        type=float,
        default=None,
        help="no new search begins after so many minutes (default: no limit)",
    )
    parser.add_argument(
        "--limit-seconds",
        type=float,
        default=LIMIT,
        help=f"a search ends unproven after so many seconds (default: {LIMIT:g})",
    )
    parser.add_argument("--workers", type=int, default=2, help="processes, one thread each (default: 2)")
    parser.add_argument(
        "--grid-epochs", type=int, default=20, help="epochs of each fold of the Lipschitz grid (default: 20)"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("docs/results/sepsis"),
        help="where results go (default: docs/results/sepsis)",
    )
    parser.add_argument(
        "--cache",
        type=Path,
        default=Path("runs/reproduce-sepsis"),
        help="where fitted models are kept (default: runs/reproduce-sepsis)",
    )
    parser.add_argument("--conf", type=Path, default=conf_folder(), help=argparse.SUPPRESS)
    parser.add_argument(
        "--set",
        nargs="*",
        default=[],
        metavar="KEY=VALUE",
        help="overrides of +experiment=sepsis, such as trainer.max_epochs=5",
    )
    return parser


def _run(asked: argparse.Namespace, typed: list[str]) -> int:
    if asked.episodes < 1 or asked.workers < 1:
        raise UserError(f"expected at least 1 episode and 1 worker; got {asked.episodes} and {asked.workers}")
    began = time.monotonic()
    deadline = None if asked.budget_minutes is None else began + 60 * asked.budget_minutes
    overrides = [*asked.set, "trainer.progress=false"]
    config = configured(asked.conf, [*overrides, f"dataset.horizon={HORIZON}"])
    seed_and_use_one_thread(int(config.seed))
    problem = problem_of(config)
    assert isinstance(problem, SepsisSimulated)
    if problem.count() < asked.episodes:
        raise UserError(
            f"only {problem.count()} test patients stay {HORIZON} steps or more; {asked.episodes} episodes "
            "were asked for",
            "--episodes",
        )
    out = RunFolder(asked.out)
    plan = {stage: cases for stage, cases in planned().items() if stage in asked.stages}
    constants = sorted({each.case.constant for cases in plan.values() for each in cases} | {USUAL.constant})
    say(began, f"models for L_h = {', '.join(f'{constant:g}' for constant in constants)} in {asked.cache}")
    study = Study(
        [problem.case(index) for index in range(asked.episodes)],
        models(asked.conf, asked.cache, problem, constants, overrides),
        problem.observations(),
        problem,
        asked.limit_seconds,
    )
    _record(
        out,
        typed,
        asked.limit_seconds if plan else None,
        fingerprints(asked.cache, constants),
        int(config.seed),
    )
    rows = EpisodeRows(asked.out / "episodes.csv")
    wanted = [each for cases in plan.values() for each in cases]
    todo = [
        (e, case)
        for e, case in tasks(wanted, asked.episodes)
        if case.key(study.decision_cases[e].identity) not in rows.done
    ]
    if todo:
        _searches(study, rows, todo, asked.workers, deadline, began)
    if "truth" in asked.stages:
        _truth(study, asked.out / "truth.csv", asked.workers, deadline, began)
    if "grid" in asked.stages:
        content = plain(config)
        common = Validated(
            problem.episodes("train"),
            content["surrogate"],
            content["trainer"],
            asked.grid_epochs,
        )
        for cell in grid(common, asked.out / "lipschitz_grid.csv", asked.workers, deadline):
            say(began, f"grid: L_h, L_phi = {cell[0]}, {cell[1]}")
    if "figures" in asked.stages:
        _figures(study, out, rows, plain(config))
        say(began, f"figures and README.md in {asked.out}")
    return 0


def _searches(
    study: Study,
    rows: EpisodeRows,
    todo: list[tuple[int, Case]],
    workers: int,
    deadline: float | None,
    began: float,
) -> None:
    say(began, f"{len(todo)} searches to do, {len(rows.done)} done before")
    for number, row in enumerate(shared(solved, study, todo, workers, deadline), 1):
        rows.append([row])
        if number == len(todo) or number * 50 // len(todo) > (number - 1) * 50 // len(todo):
            say(began, f"searched {number} of {len(todo)}")


def _truth(study: Study, path: Path, workers: int, deadline: float | None, began: float) -> None:
    """For k = 1, 2 and 3, all episodes; (k, episode) pairs that are there are left out."""
    done = {(row["k"], row["episode"]) for row in _read(path)}
    bound = replace(USUAL, search=BOUND, anchors="", size=0)
    cases = [replace(bound, changes=changes) for changes in (1, 2, 3)]
    todo = [
        (e, case)
        for e, each in enumerate(study.decision_cases)
        for case in cases
        if (str(case.changes), each.identity) not in done
    ]
    for number, found in enumerate(shared(judged, study, todo, workers, deadline), 1):
        _append(path, found)
        if number % 100 == 0 or number == len(todo):
            say(began, f"judged {number} of {len(todo)} by the truth")


def _figures(study: Study, out: RunFolder, rows: EpisodeRows, config: dict[str, Any]) -> None:
    frame = rows.frame()
    stages = {stage: [each.case for each in cases] for stage, cases in planned().items()}
    run = out.read_json("run.json")
    text = ["# Sepsis: the paper's figures on the simulated cohort", "", *caution_of_run(run), _method(run)]
    with drawing():
        found = sepsis_figures.figures(frame, stages)
        three = sepsis_figures.best(frame)
        if len(three):
            found["patient"] = _patient(
                study, three["episode"].to_list()[int(three["improvement"].to_numpy().argmax())], config
            )
        cells = decreases(out.path / "lipschitz_grid.csv")
        if cells:
            found["lipschitz_grid"] = lipschitz_grid.draw(cells)
        truth = _read(out.path / "truth.csv")
        if truth:
            found["truth_errors"] = truth_errors.draw([row for row in truth if row["k"] == "3"])
        for name, figure in found.items():
            save(figure, out.path / "figures", name)
            text += ["", f"![{name.replace('_', ' ')}](figures/{name}.svg)"]
    text += ["", "## The numbers", *sepsis_figures.tables(frame, stages)]
    for changes in sorted({row["k"] for row in truth}):
        text += [
            "",
            f"### What the truth says, k = {changes}",
            "",
            *truth_errors.markdown([row for row in truth if row["k"] == changes]),
        ]
    out.write("README.md", "\n".join(text) + "\n")


def _patient(study: Study, episode: str, config: dict[str, Any]) -> Figure:
    decision_case = next(each for each in study.problem.chosen if each.identity == episode)
    case = replace(USUAL, search=BOUND, anchors="", size=0)
    objective = _objective(study, EpisodeCase(decision_case), case)
    trajectory = objective.trajectory_record(search(case, study.pool, study.limit)(objective))
    return patient_trajectory.draw({"identity": episode, "trajectory": trajectory}, wording(config))


def _method(run: dict[str, Any]) -> str:
    commands = ", ".join(f"`{command}`" for command in run.get("commands", []))
    return (
        f"Made by {commands} at commit {run.get('commit')} (see run.json). Raw rows: episodes.csv. Episodes "
        f"are the first {HORIZON} steps of test patients "
        "who stay that long. Means bear 95% bootstrap intervals over episodes. A search that took more than "
        f"{run.get('limit_seconds') or LIMIT:g} s was "
        "ended unproven; its branching factor, seconds and improvement are lower bounds, and open markers "
        "say so. `astar` is the project's A*; `astar_paper` "
        "bounds and expands as the paper does, with anchors by time step, on fewer episodes; "
        "`branch_and_bound` needs no anchors. M is the number of "
        "sequences simulated for anchors, or, for anchors `..._of_size`, the number of states in the set. "
        "Seconds are wall-clock, one thread a search."
    )


def _record(
    out: RunFolder, typed: list[str], limit: float | None, weights: dict[str, str], seed: int
) -> None:
    """Writes run.json, and refuses rows that came from other models."""
    before = out.read_json("run.json")
    odd = [
        constant
        for constant, digest in weights.items()
        if before.get("models", {}).get(constant, digest) != digest
    ]
    if odd and (out.path / "episodes.csv").exists():
        raise UserError(
            f"the rows there came from other models (L_h = {', '.join(odd)})",
            str(out.path),
            "Move the folder away, or bring those models back",
        )
    # Only stages that search have a limit worth telling: drawing figures later must not change what is said
    # of the rows.
    told = {
        "limit_seconds": before.get("limit_seconds") if limit is None else limit,
        "models": before.get("models", {}) | weights,
    }
    note(out, "reproduce_sepsis", typed, told, seed)


def _read(path: Path) -> list[dict[str, str]]:
    return read_rows(
        path, ("k", "episode", "sequence", "quantity", "feature", "estimator", "value"), ("k", "value")
    )


def _append(path: Path, rows: Iterable[dict[str, object]]) -> None:
    whole = list(rows)
    if not whole:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    begun = path.is_file()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(whole[0]), lineterminator="\n")
        if not begun:
            writer.writeheader()
        writer.writerows(whole)
