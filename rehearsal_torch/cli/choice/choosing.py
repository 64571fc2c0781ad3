"""The choice of a method for a problem, and its record in a run folder.

    method_choice.csv     one row per method: whether it applies and why not, its scores and values
    method_choice.json    what was taken, the sentences, and the configuration of the method that decides

A run that is resumed keeps its choice.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from omegaconf import DictConfig

from rehearsal_torch.cli.build import plain, same_kind
from rehearsal_torch.cli.choice.applicable import CHOOSE, GROUPS, applicable
from rehearsal_torch.cli.errors import as_user_error
from rehearsal_torch.files.forms import NUMBER, WHOLE, checked
from rehearsal_torch.files.rows import as_csv

if TYPE_CHECKING:
    from rehearsal_torch.method_choice.rule import Choice
    from rehearsal_torch.problems.problem import Problem
    from rehearsal_torch.run_folder import RunFolder

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
        found = compared(table, problem.units(), task, candidates, limits, seed, told, workers)
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
