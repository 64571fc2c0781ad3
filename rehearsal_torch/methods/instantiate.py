"""Construction of the objects that a configuration names: problem, surrogate, objective, search, trainer.

All random states are seeded before anything is built, and torch uses one thread: the models are small, and
results must not depend on the number of cores.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf, open_dict

from rehearsal_torch.data.task_compatibility import Kind
from rehearsal_torch.files.dotted_path import dotted, found_at
from rehearsal_torch.methods.class_allowlist import ROOMS, check_allowed
from rehearsal_torch.methods.hydra_config import plain_value, trusted_in
from rehearsal_torch.methods.presets import USUAL
from rehearsal_torch.objectives.imputation_success import ImputedSuccess
from rehearsal_torch.problems.problem import Problem
from rehearsal_torch.problems.sequences.four_hour_table import COLUMNS, CONTEXTUAL, DOSES, STATIC, VARYING
from rehearsal_torch.search.alterations.projected_ascent import ProjectedAscent
from rehearsal_torch.seeding import seed_everything
from rehearsal_torch.surrogates.imputation_ensemble import ImputedSurrogate
from rehearsal_torch.surrogates.surrogate import Surrogate
from rehearsal_torch.training.gradient_descent import Descent
from rehearsal_torch.user_error import UserError, as_user_error

# The defaults of ``conf`` for episodes: columns of the four-hour table of sepsis patients, levels of a dose.
_SEPSIS_DEFAULTS: Mapping[str, tuple[object, ...]] = {
    "varying": (VARYING, VARYING[:-1]),
    "static": (STATIC,),
    "contextual": (CONTEXTUAL,),
    "doses": (DOSES,),
    "levels": (5,),
}


def seed_and_use_one_thread(seed: int) -> None:
    """Seeds Python, NumPy and torch, and limits torch to one thread."""
    seed_everything(seed)
    torch.set_num_threads(1)


def build(config: DictConfig, group: str, **given: object) -> Any:
    """The object that a group of the configuration names, with values `given` in place of its own, or None.

    Raises:
        UserError: if a class refuses its values, or the configuration comes from a resumed folder
            (``trusted`` is a list) and `class_allowlist` does not permit the class.
    """
    node = _resolve(config, group)
    return None if "_target_" not in node else made(node, group, **given)


def screen(config: DictConfig) -> None:
    """Checks all groups of a resumed configuration before anything is built."""
    if config.get("trusted") is not None:
        for group in ROOMS:
            _resolve(config, group)


def made(node: Mapping[str, Any], where: str, **given: object) -> Any:
    """The object that a node with ``_target_``, called `where` in messages, builds."""
    with as_user_error(where):
        return instantiate(OmegaConf.create(dict(node)), **given)


def _resolve(config: DictConfig, group: str) -> dict[str, Any]:
    """A group's node as plain data, references resolved; checked if it comes from a resumed folder."""
    content = plain_value(config[group], resolve=True)
    if not isinstance(content, dict):
        fault = f"expected a mapping; got {content}"
        raise UserError(fault, group, f"Choose {group}=OPTION; see the folder conf/{group}")
    if (trusted := trusted_in(config)) is not None:
        check_allowed(content, group, trusted)
    return {str(key): value for key, value in content.items()}


def problem_of(config: DictConfig) -> Problem:
    """The data set or world."""
    problem: Problem = checked(build(config, "dataset"), Problem, "a data set or world", "dataset")
    return problem


def checked(part: Any, kind: Any, name: str, group: str) -> Any:
    """The part of a group, if it is of its class `kind`; UserError if not."""
    if not isinstance(part, kind):
        got = type(part).__name__
        raise UserError(f"expected {name}; got {got}", group, f"See the folder conf/{group}")
    return part


def tasked(config: DictConfig, problem: Problem) -> None:
    """Fills open values of a surrogate's configuration from the problem (`problems.problem.Facts`), in place:
    the task, and candidate graphs. UserError if data and surrogate are of different kinds.

    The columns of transitions, the reward of a step and the rules of changes of a task of episodes replace
    the configuration's defaults for sepsis patients, but not other settings (``surrogate.varying=[wear]``).
    """
    same_kind(problem, _declared_kind(config))
    if problem.kind == "look_back":
        _fill_episode_roles(config, problem)
    if "task" in config.surrogate and config.surrogate.task is None:
        with open_dict(config):
            for name, value in problem.facts().surrogate.items():
                if name in config.surrogate and config.surrogate[name] is None:
                    config.surrogate[name] = value
    if imputations := problem.facts().imputations:
        pooled(config, imputations)


def pooled(config: DictConfig, count: int) -> None:
    """Replaces a method's surrogate by `count` surrogates of imputed tables, and its objective by the one
    that pools them; in place, once. UserError if the method's estimates or claims cannot be pooled.
    """
    nodes = {group: _to_dict(config[group]) for group in ("surrogate", "objective", "search")}
    classes = {group: found_at(node.get("_target_")) for group, node in nodes.items()}
    if classes["surrogate"] is ImputedSurrogate:
        return
    objective, search = classes["objective"], classes["search"]
    if not getattr(objective, "pools", False) or not getattr(search, "pools", False):
        names = [str(nodes[group].get("_target_")).rpartition(".")[2] for group in ("objective", "search")]
        raise UserError(
            "multiple imputation is for the methods whose estimates can be pooled, "
            f"outcome_regression and care; this decision has {' and '.join(names)}",
            "missing: {impute: m}",
            "Choose one of these decisions, or write missing: complete in the problem file",
        )
    if config.get("claims", "in_sample") != "in_sample":
        fault = "folds of imputed tables have seen each other's rows through the imputation"
        remedy = "Leave claims= out, or write missing: complete in the problem file"
        raise UserError(fault, f"claims={config.claims}", remedy)
    with open_dict(config):
        member = {key: value for key, value in nodes["surrogate"].items() if key != "task"}
        config.surrogate = {
            "_target_": dotted(ImputedSurrogate),
            "task": nodes["surrogate"]["task"],
            "member": member | {"_partial_": True},
            "count": count,
        }
        config.objective = {
            "_target_": dotted(ImputedSuccess),
            "_partial_": True,
            "member": nodes["objective"] | {"_partial_": True},
        }
        objective_type = search.maximises()
        if objective_type is not None and not issubclass(ImputedSuccess, objective_type):
            # Not a search of one closed form, but an ascent of the mean of m concave functions.
            config.search = {"_target_": dotted(ProjectedAscent)}


def _fill_episode_roles(config: DictConfig, problem: Problem) -> None:
    roles, reward = dict(problem.facts().surrogate), problem.facts().reward
    order = roles.pop("order", None)
    if not roles and not reward:
        return
    columns = problem.observations().names
    with open_dict(config):
        model = config.surrogate.member if "member" in config.surrogate else config.surrogate
        if "varying" in model:
            model.update(with_roles(_to_dict(model), roles))
            names = [name for role in ("varying", "static", "contextual", "doses") for name in model[role]]
            if unknown := [name for name in names if name not in columns]:
                fault = f"expected columns of the data set; got {', '.join(map(str, unknown))}"
                remedy = f"The columns are {', '.join(columns[: len(columns) // 2])}"
                raise UserError(fault, "surrogate", remedy)
        if order and "order" in config.surrogate and not config.surrogate.order:
            config.surrogate.order = order
        if "reward" in config.objective or "_target_" in config.objective:
            reward_node = config.objective.get("reward")
            if gives_way(None if reward_node is None else _to_dict(reward_node), columns):
                config.objective.reward = dict(reward)
        rules = _to_dict(config.objective.get("rules"))
        for name, value in problem.facts().rules.items() if rules else ():
            if rules.get(name) is None:
                config.objective.rules[name] = value


def _to_dict(node: Any) -> dict[str, Any]:
    """A mapping of the configuration as plain data; empty for anything else."""
    content = plain_value(node)
    return {str(key): value for key, value in content.items()} if isinstance(content, dict) else {}


def same_kind(problem: Problem, required: Kind | None, search: str = "") -> None:
    """Raises a UserError if a problem is not of the required kind; `search` names a search that needs it."""
    if required is None or required == problem.kind:
        return
    (offered, _), (data, example) = _DESCRIPTIONS[problem.kind], _DESCRIPTIONS[required]
    mismatch = f"{type(problem).__name__} has {offered}"
    alternative = f"a dataset with {data}, such as dataset={example}"
    decision = f"decision={' or decision='.join(USUAL[problem.kind][:3])}"
    if search:
        raise UserError(
            f"{search} searches for {data}; {mismatch}",
            "search",
            "Leave search= out and choose a decision for such data, which brings its own search, such as "
            f"{decision}; or choose {alternative}",
        )
    fault = f"this decides for {data}; {mismatch}"
    remedy = f"Choose a decision for such data, such as {decision}, or {alternative}"
    raise UserError(fault, "decision", remedy)


# The data of each kind of problem, and an example.
_DESCRIPTIONS: dict[Kind, tuple[str, str]] = {
    "rehearse": ("cases with a context, actions and outcomes", "bank"),
    "optimise": ("rounds of trials", "dropwave"),
    "look_back": ("episodes", "sepsis_simulated"),
}


def _declared_kind(config: DictConfig) -> Kind | None:
    """The kind of problem that the surrogate's class declares; None for any, and for another class."""
    surrogate = found_at(_resolve(config, "surrogate").get("_target_"))
    is_surrogate = isinstance(surrogate, type) and issubclass(surrogate, Surrogate)
    return surrogate.kind if is_surrogate else None


def surrogate_of(config: DictConfig, problem: Problem, *, settled: bool = True) -> Surrogate:
    """The unfitted surrogate; initial weights by the seed if `settled`, else by torch's current state."""
    tasked(config, problem)
    if settled:
        seed_and_use_one_thread(int(config.seed))
    surrogate: Surrogate = checked(build(config, "surrogate"), Surrogate, "a surrogate", "surrogate")
    return surrogate


def trainer_of(config: DictConfig, folder: Path | None) -> Descent | None:
    """The trainer, or None; it keeps states in the configuration's folder or `folder`, for None nowhere."""
    if "_target_" not in config.trainer:
        return None
    states = None if folder is None else str(config.trainer.folder or folder)
    trainer: Descent = build(config, "trainer", folder=states)
    trainer.progress = trainer.progress and not config.get("quiet", False)
    return trainer


def with_roles(node: Mapping[str, Any], roles: Mapping[str, Any]) -> dict[str, Any]:
    """The `roles` of a task that a transition model's node leaves open, or has as defaults."""
    settings = {name: tuple(value) if isinstance(value, Sequence) else value for name, value in node.items()}
    return {
        name: value
        for name, value in roles.items()
        if settings.get(name) in (None, *_SEPSIS_DEFAULTS.get(name, ()))
    }


def gives_way(reward: Mapping[str, Any] | None, columns: Sequence[str]) -> bool:
    """Whether a task's reward replaces that of the configuration: there is none, it has neither weights nor
    costs nor a score, or its score reads only columns of sepsis patients and none of the task.
    """
    if reward is None:
        return True
    components = reward.get("components")
    if not isinstance(components, Mapping):
        return not reward.get("weights") and not reward.get("costs")
    quantities = [quantity for part in components.values() if isinstance(part, Mapping) for quantity in part]
    names = {name.strip() for quantity in quantities for name in str(quantity).split("/")}
    return names <= set(COLUMNS) and not names & set(columns)
