"""Which methods apply to a problem: those that can be built for its task and its rows.

What a method needs (a graph without a hidden cause beside an arrow, a posterior, costs) is known to its
surrogate, objective and search alone. Each method is therefore built as for a run, up to the fit, and what it
answers is the reason. What only a fit shows, the comparison adds.

The choice is recorded in the run folder:

    method_choice.csv     one row per method: whether it applies and why not, its scores and values
    method_choice.json    what was taken, the sentences, and the configuration of the method that decides

A run that is resumed keeps its choice.
"""

from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from hydra.core.global_hydra import GlobalHydra
from omegaconf import DictConfig, OmegaConf, open_dict

from rehearsal_torch.cli.build import plain, same_kind
from rehearsal_torch.cli.methods import all_methods, surrogate_class
from rehearsal_torch.cli.overrides import composed
from rehearsal_torch.cli.run import Run, build, suits
from rehearsal_torch.cli.validation import CONF
from rehearsal_torch.files.forms import NUMBER, WHOLE, checked
from rehearsal_torch.files.rows import as_csv
from rehearsal_torch.user_error import UserError, as_user_error

if TYPE_CHECKING:
    from rehearsal_torch.data.table import Table
    from rehearsal_torch.method_choice.one_split import Candidate
    from rehearsal_torch.method_choice.rule import Choice, Standing
    from rehearsal_torch.problems.problem import Problem
    from rehearsal_torch.run_folder import RunFolder
    from rehearsal_torch.surrogates.surrogate import Surrogate

TABLE, RECORD = "method_choice.csv", "method_choice.json"
_FORMS = {"chosen": "a string", "best": "a string", "value": NUMBER, "bias": NUMBER, "rows": WHOLE}


def choose(
    config: DictConfig,
    problem: "Problem",
    told: Callable[[str], None] | None = None,
    workers: int = 1,
) -> "Choice":
    """Compares the methods that apply to a problem, and takes one.

    Args:
        config: The whole configuration, with the limits of the comparison (``choose``).
        told: Is told of the progress; None for silence.
        workers: The number of processes that share the comparison.

    Raises:
        UserError: if the problem is of another kind, a limit is out of range, or nothing can be compared.
    """
    from rehearsal_torch.data.rehearsal_task import RehearsalTask
    from rehearsal_torch.method_choice.comparison import compared
    from rehearsal_torch.method_choice.one_split import Limits
    from rehearsal_torch.method_choice.rule import NOTHING, SIMPLEST_FIRST, Standing, chosen

    same_kind(problem, "rehearse")
    task, seed, table = problem.question(), int(config.seed), problem.observations()
    assert isinstance(task, RehearsalTask)
    with as_user_error("decision=auto"):
        limits = Limits(**plain(config)[CHOOSE])
        candidates, others = applicable(config, problem)
        found = compared(table, problem.facts().units, task, candidates, limits, seed, told, workers)
        idle = all(each.method != NOTHING for each in others)
        rest = [each for each in others if each.method != NOTHING]
        refused = [Standing(name, False, False, reason) for name, reason in found.refused.items()]
        return chosen(found, len(table), SIMPLEST_FIRST, [*refused, *rest], idle)


def record(choice: "Choice", config: DictConfig, folder: "RunFolder") -> None:
    """Writes a choice into a run folder.

    Args:
        config: The configuration of the run, in which the chosen method decides.
    """
    from rehearsal_torch.method_choice.words import rows, sentences

    folder.write(TABLE, as_csv(rows(choice), "nan"))
    one = choice.standing(choice.chosen)
    folder.write_json(
        RECORD,
        {
            "chosen": choice.chosen,
            "best": choice.best,
            "value": one.value,
            "behind_error": one.behind_error,
            "bias": choice.bias,
            "rows": choice.rows,
            "of": choice.of,
            "cases": choice.cases,
            "halves": choice.halves,
            "sentences": sentences(choice),
            "configuration": {name: plain(config)[name] for name in GROUPS},
        },
    )


def recorded(folder: "RunFolder") -> dict[str, Any]:
    """The record of the choice that a run has made; empty if it has made none.

    Raises:
        PlainFileError: if it is damaged.
    """
    path = folder.path / RECORD
    if not path.exists():
        return {}
    forms = {**_FORMS, "sentences": "a list of strings"}
    return checked(folder.read_json(RECORD), str(path), forms, ("chosen", "sentences"))


GROUPS = ("surrogate", "objective", "search", "certificate")
# The key that asks for a choice (conf/decision/auto.yaml), and the preset that has it.
CHOOSE, AUTO = "choose", "auto"


def with_method(config: DictConfig, method: str) -> DictConfig:
    """A copy of a configuration in which another method decides, with its own settings.

    Args:
        config: The whole configuration, of a problem of kind ``rehearse``.
        method: The name of a file in ``conf/decision``.
    """
    parts = _parts(method)
    made = deepcopy(config)
    with open_dict(made):
        made.pop(CHOOSE, None)
        for name, node in parts.items():
            made[name] = deepcopy(node)
    return made


@cache
def _parts(method: str) -> dict[str, Any]:
    """The groups of a method, with references to keys such as ``seed`` unresolved."""
    hydra = GlobalHydra.instance().hydra
    try:
        config, _ = composed(CONF, ["+experiment=own_table", f"decision={method}"], False, complete=False)
    finally:
        # A job of Hydra may be under way.
        GlobalHydra.instance().hydra = hydra
    names = [*GROUPS, *([CHOOSE] if CHOOSE in config else [])]
    return {name: OmegaConf.to_container(config[name], resolve=False) for name in names}


def applicable(config: DictConfig, problem: "Problem") -> "tuple[list[Candidate], list[Standing]]":
    """The methods to compare, simplest first, and all others with the reason.

    Args:
        problem: A problem of kind ``rehearse``.
    """
    from rehearsal_torch.method_choice.one_split import Candidate
    from rehearsal_torch.method_choice.rule import NOT_COMPARED, NOTHING, PARTS, SIMPLEST_FIRST, Standing

    candidates: list[Candidate] = []
    others: list[Standing] = []
    for name in (*SIMPLEST_FIRST, *NOT_COMPARED):
        try:
            run = build(with_method(config, name), problem)
            suits(run, run.surrogate())
        except (UserError, ValueError) as error:
            others.append(Standing(name, False, False, _sentence(error)))
            continue
        if name in NOT_COMPARED:
            others.append(Standing(name, True, False, NOT_COMPARED[name]))
        elif name != NOTHING:
            within = PARTS.get(name)
            made = Candidate(name, partial(_fitted, run), run.objective, run.search, within)
            candidates.append(made)
    return candidates, others


def fits(problem: "Problem", name: str) -> None:
    """Refuses a method that cannot decide for a problem; nothing is fitted.

    Args:
        problem: A problem of kind ``rehearse``.

    Raises:
        UserError: if it cannot be built for the task and the rows.
    """
    config, _ = composed(CONF, ["+experiment=own_problem"], False, complete=False)
    run = build(with_method(config, name), problem)
    suits(run, run.surrogate())


def rehearsing() -> Sequence[str]:
    """All methods that decide for cases of a table, in alphabetical order."""
    return methods_of("rehearse")


def methods_of(kind: str) -> list[str]:
    """All methods that decide for problems of a kind, in alphabetical order; without `auto`.

    Args:
        kind: A kind of problem, such as "look_back".
    """
    return [name for name in all_methods() if name != AUTO and surrogate_class(name).kind == kind]


def _fitted(run: Run, table: "Table") -> "Surrogate":
    from rehearsal_torch.training.fit import fit

    return fit(run.surrogate(), table)


def _sentence(error: Exception) -> str:
    """What is wrong, without what to do about it."""
    text = error.what if isinstance(error, UserError) else str(error)
    return " ".join(text.split()).rstrip(".")
