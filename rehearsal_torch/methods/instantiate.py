"""Construction of the objects that a configuration names.

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
from rehearsal_torch.methods.hydra_config import trusted_names
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

# What the configuration brings along: columns of the four-hour table of sepsis patients, levels of a dose.
_BROUGHT: Mapping[str, tuple[object, ...]] = {
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
    """The object that a group of the configuration names, with values `given` in place of its own; None if it
    names none.

    All objects of a configuration are built here. If it comes from a resumed folder (``trusted`` is a list
    then), only what `allowed` permits is built.

    Raises:
        UserError: if a class refuses its values, or may not be built.
    """
    node = _resolved(config, group)
    return None if "_target_" not in node else made(node, group, **given)


def screen(config: DictConfig) -> None:
    """Checks all groups of a resumed configuration before anything is built."""
    if config.get("trusted") is not None:
        for group in ROOMS:
            _resolved(config, group)


def made(node: Mapping[str, Any], where: str, **given: object) -> Any:
    """The object that a node of the configuration builds, plain data with ``_target_``, called `where` in
    messages.
    """
    with as_user_error(where):
        return instantiate(OmegaConf.create(dict(node)), **given)


def _resolved(config: DictConfig, group: str) -> dict[str, Any]:
    """A group's node as plain data, references resolved; checked if the configuration comes from a resumed
    folder.
    """
    node = config[group]
    content = OmegaConf.to_container(node, resolve=True) if OmegaConf.is_config(node) else node
    if not isinstance(content, dict):
        raise UserError(
            f"expected a mapping; got {content}", group, f"Choose {group}=OPTION; see the folder conf/{group}"
        )
    trusted = config.get("trusted")
    if trusted is not None:
        names = OmegaConf.to_container(trusted) if OmegaConf.is_config(trusted) else trusted
        check_allowed(content, group, trusted_names(names))
    return {str(key): value for key, value in content.items()}


def problem_of(config: DictConfig) -> Problem:
    """The data set or world."""
    problem = build(config, "dataset")
    if not isinstance(problem, Problem):
        raise UserError(
            f"expected a data set or world; got {type(problem).__name__}",
            "dataset",
            "See the folder conf/dataset",
        )
    return problem


def tasked(config: DictConfig, problem: Problem) -> None:
    """Fills open values of a surrogate's configuration from the problem (`problems.problem.Facts`), in place:
    the task, and candidate graphs. The configuration then builds the surrogate on its own.

    Episodes with a task of their own bring the columns of a model of transitions, the reward of a step, and
    rules of changes: they take the place of those that the configuration brings along, of sepsis patients;
    what was set to something else, such as ``surrogate.varying=[wear]``, is kept.

    Raises:
        UserError: if data and surrogate are of different kinds.
    """
    same_kind(problem, _kind(config))
    if problem.kind == "look_back":
        _episode_roles(config, problem)
    if "task" in config.surrogate and config.surrogate.task is None:
        with open_dict(config):
            for name, value in problem.facts().surrogate.items():
                if name in config.surrogate and config.surrogate[name] is None:
                    config.surrogate[name] = value
    if imputations := problem.facts().imputations:
        pooled(config, imputations)


def pooled(config: DictConfig, count: int) -> None:
    """Puts m surrogates of imputed tables, and the objective that pools them, in place of a method's own; in
    place, once.

    Raises:
        UserError: if the method's estimates cannot be pooled, or would be replaced by claims that are not.
    """
    nodes = {group: _container(config[group]) for group in ("surrogate", "objective", "search")}
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
        raise UserError(
            "folds of imputed tables have seen each other's rows through the imputation",
            f"claims={config.claims}",
            "Leave claims= out, or write missing: complete in the problem file",
        )
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
        sought = search.maximises()
        if sought is not None and not issubclass(ImputedSuccess, sought):
            # A search of one closed form; the mean of m concave functions is ascended instead.
            config.search = {"_target_": dotted(ProjectedAscent)}


def _episode_roles(config: DictConfig, problem: Problem) -> None:
    roles, reward = dict(problem.facts().surrogate), problem.facts().reward
    order = roles.pop("order", None)
    if not roles and not reward:
        return
    columns = problem.observations().names
    with open_dict(config):
        model = config.surrogate.member if "member" in config.surrogate else config.surrogate
        if "varying" in model:
            model.update(with_roles(_container(model), roles))
            named = [name for role in ("varying", "static", "contextual", "doses") for name in model[role]]
            if unknown := [name for name in named if name not in columns]:
                raise UserError(
                    f"expected columns of the data set; got {', '.join(map(str, unknown))}",
                    "surrogate",
                    f"The columns are {', '.join(columns[: len(columns) // 2])}",
                )
        if order and "order" in config.surrogate and not config.surrogate.order:
            config.surrogate.order = order
        if "reward" in config.objective or "_target_" in config.objective:
            own = config.objective.get("reward")
            if gives_way(None if own is None else _container(own), columns):
                config.objective.reward = dict(reward)
        rules = _container(config.objective.get("rules"))
        for name, value in problem.facts().rules.items() if rules else ():
            if rules.get(name) is None:
                config.objective.rules[name] = value


def _container(node: Any) -> dict[str, Any]:
    """A mapping of the configuration as plain data; empty for anything else."""
    plain_node = OmegaConf.to_container(node) if OmegaConf.is_config(node) else node
    return {str(key): value for key, value in plain_node.items()} if isinstance(plain_node, dict) else {}


def same_kind(problem: Problem, required: Kind | None, search: str = "") -> None:
    """Checks that a problem is of the kind that a part of the method decides for; the `search` by name, if it
    is the part.

    Raises:
        UserError: if it is of another kind.
    """
    if required is None or required == problem.kind:
        return
    (data, _), (needed, like) = _DATA[problem.kind], _DATA[required]
    wrong, other = f"{type(problem).__name__} has {data}", f"a dataset with {needed}, such as dataset={like}"
    decision = f"decision={' or decision='.join(USUAL[problem.kind][:3])}"
    if search:
        raise UserError(
            f"{search} searches for {needed}; {wrong}",
            "search",
            "Leave search= out and choose a decision for such data, which brings its own search, such as "
            f"{decision}; or choose {other}",
        )
    raise UserError(
        f"this decides for {needed}; {wrong}",
        "decision",
        f"Choose a decision for such data, such as {decision}, or {other}",
    )


# What kinds of problems have, and a data set of each.
_DATA: dict[Kind, tuple[str, str]] = {
    "rehearse": ("cases with a context, actions and outcomes", "bank"),
    "optimise": ("rounds of trials", "dropwave"),
    "look_back": ("episodes", "sepsis_simulated"),
}


def _kind(config: DictConfig) -> Kind | None:
    """The kind of problem that the surrogate's class declares; None for any kind, and for anything but a
    surrogate.
    """
    found = found_at(_resolved(config, "surrogate").get("_target_"))
    return found.kind if isinstance(found, type) and issubclass(found, Surrogate) else None


def surrogate_of(config: DictConfig, problem: Problem, *, settled: bool = True) -> Surrogate:
    """Builds the unfitted surrogate, whose open task is filled in; if not `settled`, its initial weights are
    drawn from the current random state, which the caller has seeded.
    """
    tasked(config, problem)
    if settled:
        seed_and_use_one_thread(int(config.seed))
    surrogate = build(config, "surrogate")
    if not isinstance(surrogate, Surrogate):
        raise UserError(
            f"expected a surrogate; got {type(surrogate).__name__}",
            "surrogate",
            "See the folder conf/surrogate",
        )
    return surrogate


def trainer_of(config: DictConfig, folder: Path | None) -> Descent | None:
    """The trainer, or None if nothing needs training; it keeps resumable states in the folder, unless the
    configuration names one, and without any stores nothing, as for the refits of an online run.
    """
    if "_target_" not in config.trainer:
        return None
    states = None if folder is None else str(config.trainer.folder or folder)
    trainer: Descent = build(config, "trainer", folder=states)
    trainer.progress = trainer.progress and not config.get("quiet", False)
    return trainer


def with_roles(node: Mapping[str, Any], roles: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a model of transitions that a task decides (`EpisodeRoles.surrogate_settings`): those
    that the model's node of the configuration does not have of its own.
    """
    own = {name: tuple(each) if isinstance(each, Sequence) else each for name, each in node.items()}
    return {name: value for name, value in roles.items() if own.get(name) in (None, *_BROUGHT.get(name, ()))}


def gives_way(reward: Mapping[str, Any] | None, columns: Sequence[str]) -> bool:
    """Whether a reward of the configuration is that of sepsis patients, for which a task's stands in: there
    is none, it has neither weights nor costs nor a score, or its score reads columns of the four-hour
    table and none of the task.
    """
    if reward is None:
        return True
    components = reward.get("components")
    if not isinstance(components, Mapping):
        return not reward.get("weights") and not reward.get("costs")
    quantities = [quantity for part in components.values() if isinstance(part, Mapping) for quantity in part]
    read = {name.strip() for quantity in quantities for name in str(quantity).split("/")}
    return read <= set(COLUMNS) and not read & set(columns)
