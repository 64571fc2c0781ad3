"""Which methods apply to a problem: those that can be built for its task and its rows.

What a method needs (a graph without a hidden cause beside an arrow, a posterior, costs) is known to its
surrogate, objective and search alone. Each method is therefore built as for a run, up to the fit, and what it
answers is the reason. What only a fit shows, the comparison adds.
"""

from collections.abc import Sequence
from copy import deepcopy
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from hydra.core.global_hydra import GlobalHydra
from omegaconf import DictConfig, OmegaConf, open_dict

from rehearsal_torch.cli.errors import UserError
from rehearsal_torch.cli.methods import all_methods, surrogate_class
from rehearsal_torch.cli.overrides import composed
from rehearsal_torch.cli.run import Run, build, suits
from rehearsal_torch.cli.validation import CONF

if TYPE_CHECKING:
    from rehearsal_torch.data.table import Table
    from rehearsal_torch.method_choice.one_split import Candidate
    from rehearsal_torch.method_choice.rule import Standing
    from rehearsal_torch.problems.problem import Problem
    from rehearsal_torch.surrogates.surrogate import Surrogate

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
