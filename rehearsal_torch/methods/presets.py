"""Methods by name, with the capabilities of each.

A method is the name of a file in ``conf/decision``, which names a surrogate, an objective and a search. Their
classes declare the capabilities (`Surrogate.kind`, `AlterationObjective.of_success` and `pools`,
`Search.weighs`); nothing is built.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

from omegaconf import OmegaConf

from rehearsal_torch.data.task_compatibility import Kind
from rehearsal_torch.files.dotted_path import found_at
from rehearsal_torch.methods.hydra_config import composed, options
from rehearsal_torch.objectives.objective import AlterationObjective, Objective
from rehearsal_torch.search.search import NoAction, Search
from rehearsal_torch.surrogates.surrogate import Surrogate
from rehearsal_torch.user_error import RequestError, choose_from, did_you_mean

# The groups of the configuration that a method consists of.
GROUPS = ("surrogate", "objective", "search", "certificate")
# The method chosen from the rows, and the key of its preset that requests the choice.
AUTO, CHOOSE = "auto", "choose"
# Methods for each kind of problem, the most common first.
USUAL: dict[Kind, tuple[str, ...]] = {
    "rehearse": ("outcome_regression", "care", "none"),
    "optimise": ("excbo", "ucb", "eicf", "eifn", "mcbo"),
    "look_back": ("closed_form", "branch_and_bound", "greedy"),
}
_QUESTIONS: dict[Kind | None, str] = {
    "rehearse": "cases of a table (rt.rehearse)",
    "optimise": "trials (rt.CausalOptimiser)",
    "look_back": "episodes (rt.look_back)",
}


@dataclass(frozen=True)
class Capabilities:
    """The classes of a method's parts, and what follows from them.

    Attributes:
        costs: Whether it can weigh costs against the worth of a desired outcome, or never acts.
        imputation: Whether its estimates can be pooled over imputed tables.
        intervals: Whether it gives an interval of the difference between two actions.
    """

    surrogate: type[Surrogate]
    objective: type[Objective]
    search: type[Search[Any]]
    question: Kind | None
    costs: bool
    imputation: bool
    intervals: bool


def nodes(method: str) -> dict[str, Any]:
    """The groups of a method as plain data, references unresolved; `AUTO` also has `CHOOSE`."""
    config = composed("own_table", decision=method)
    groups = [*GROUPS, *([CHOOSE] if CHOOSE in config else [])]
    return {name: OmegaConf.to_container(config[name], resolve=False) for name in groups}


@cache
def capabilities(method: str) -> Capabilities:
    """The capabilities of a method."""
    parts = nodes(method)
    surrogate, objective, search = (found_at(parts[group]["_target_"]) for group in GROUPS[:3])
    alters = issubclass(objective, AlterationObjective)
    return Capabilities(
        surrogate,
        objective,
        search,
        question=surrogate.kind,
        costs=issubclass(search, NoAction) or (alters and objective.of_success and search.weighs),
        imputation=alters and objective.pools and search.pools,
        intervals=alters and objective.contrast is not AlterationObjective.contrast,
    )


def methods(question: Kind) -> list[str]:
    """The methods for a kind of problem, with `AUTO`: the usual one first, the others by alphabet."""
    names = [name for name in options("decision") if decides_for(name, question)]
    return sorted(names, key=lambda name: (name != USUAL[question][0], name))


def decides_for(method: str, question: Kind) -> bool:
    """Whether there is such a method for a kind of problem; no other method is loaded."""
    return method in options("decision") and capabilities(method).question == question


def methods_with(surrogate: type[Surrogate]) -> list[str]:
    """The methods whose surrogate is of a class, in alphabetical order; without `AUTO`."""
    return [
        name for name in options("decision") if name != AUTO and capabilities(name).surrogate is surrogate
    ]


def methods_by(objective: type[Objective], search: type[Search[Any]]) -> list[str]:
    """The methods that maximise objectives of a class by searches of a class, in alphabetical order."""
    pairs = [(name, capabilities(name)) for name in options("decision")]
    return [name for name, can in pairs if (can.objective, can.search) == (objective, search)]


def check_method(method: str, question: Kind) -> None:
    """Raises a RequestError, with the suitable methods, if a method does not exist or is for another kind."""
    if decides_for(method, question):
        return
    suitable = methods(question)
    if method in options("decision"):
        raise RequestError(
            f"method={method!r} decides for {_QUESTIONS[capabilities(method).question]}; here it is for "
            f"{_QUESTIONS[question]}: choose one of {', '.join(suitable)}"
        )
    near = did_you_mean(str(method), suitable)
    hint = "" if near == choose_from(suitable) else f" {near}"
    raise RequestError(f"there is no method {method!r}: choose one of {', '.join(suitable)}.{hint}")
