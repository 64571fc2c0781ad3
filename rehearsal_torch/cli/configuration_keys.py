"""Validation of the values of a configuration's own keys, before anything is imported or written."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from rehearsal_torch.cli.command_words import is_table, of_table, on_file, spoken
from rehearsal_torch.dask_cluster import check_reachable, require_dask
from rehearsal_torch.data.size_limits import check_seed
from rehearsal_torch.files.bounded_yaml import checked, read_yaml
from rehearsal_torch.files.redaction import check_no_user
from rehearsal_torch.files.similar_names import beside, checkpoint_in, near_files, suggestion
from rehearsal_torch.methods.hydra_config import CONF, plain_value
from rehearsal_torch.user_error import UserError, as_user_error, choose_from, did_you_mean

# The overrides that choose the data set of a run, and those that determine its data.
_DATASET_OVERRIDES = ("+experiment=", "dataset=")
_DATA_OVERRIDES = ("+experiment=", "dataset=", "dataset.", "+dataset.", "++dataset.", "path=", "checkpoint=")


def check(config: DictConfig, script: str, jobs: Sequence[Sequence[str]], typed: Sequence[str]) -> None:
    """Raises a UserError unless numbers are in range, input files exist, and the run has data."""
    with as_user_error(""):
        check_seed(config.seed)
    minima = {"limit": 1, "preview": 1, "workers": 1, "folds": 2, "shards": 1, "shard": 0}
    for key, minimum in minima.items():
        _check_whole(key, config[key], minimum, optional=key in ("limit", "workers"))
    for key in ("tables", "quiet"):
        if not isinstance(config[key], bool):
            raise UserError(f"expected true or false; got {config[key]}", key)
    _check_choice("split", config.split, ("train", "validation", "test"))
    if "changes" in config.objective:
        _check_whole("objective.changes", config.objective.changes, 0)
    hint = "Choose by=patient, unless a comparison requires the other"
    _check_choice("by", config.by, ("patient", "transition"), hint)
    _check_parallel(config)
    for name, node in (config.get("logger") or {}).items():
        if isinstance(node, DictConfig):
            with as_user_error(""):
                check_no_user(node.get("tracking_uri"), f"logger.{name}.tracking_uri")
    _check_claims(config)
    _check_auto(config, typed)
    shards = [int(text.partition("=")[2]) for job in jobs for text in job if text.startswith("shard=")]
    last = max(shards, default=int(config.shard))
    if last >= int(config.shards):
        fault = f"expected shards 0 to {int(config.shards) - 1}; got {last}"
        raise UserError(fault, "shard", f"Give shards={last + 1}, or another shard")
    if "path" in config.dataset and config.dataset.path is None:
        raise UserError("this data set is read from a file, which must be given", "path", "Add path=FILE")
    if config.path is not None and not Path(config.path).exists():
        near = near_files(Path(config.path))[:2]
        remedy = f"Did you mean {' or '.join(near)}?" if near else choose_from(beside(Path(config.path)))
        raise UserError("there is no such file or folder", f"path={config.path}", remedy)
    refuse_unread(config, script, jobs, typed)
    _check_sizes(config)
    _check_checkpoint(config, script, jobs)
    if not any(text.startswith(_DATA_OVERRIDES) for text in typed):
        raise UserError("no data are given", "", _examples(script))


def _examples(script: str) -> str:
    """Example commands, for a command line without data."""
    command, task = spoken(script), "dataset.task=task.yaml"
    experiments = ", ".join(path.stem for path in sorted((CONF / "experiment").glob("*.yaml")))
    examples = [f"Type, for example, {command} +experiment=sepsis (experiments: {experiments})"]
    if script == "decide":
        examples += [
            f"or your own table: {command} +experiment=own_table path=table.csv {task}",
            f"or your own problem file: {on_file(script, 'problem.yaml')}",
            f"or your own experiments: {command} +experiment=own_system path=experiments.csv {task}",
            f"or with a trained surrogate: {command} +experiment=sepsis checkpoint=FOLDER",
        ]
    return "; ".join([*examples, f"{command} --help shows all options"])


# The groups whose whole numbers, but for seeds, determine memory and time, and the bound of these numbers.
_SIZED, _LARGEST = ("dataset", "surrogate", "objective", "search", "certificate", "trainer"), 10**8


def _check_sizes(config: DictConfig) -> None:
    pending: list[tuple[str, Any]] = [(group, plain_value(config[group], resolve=True)) for group in _SIZED]
    while pending:
        key, value = pending.pop()
        if isinstance(value, dict):
            pending += [(f"{key}.{name}", item) for name, item in value.items() if name != "seed"]
        elif isinstance(value, list):
            pending += [(f"{key}[{index}]", item) for index, item in enumerate(value)]
        elif isinstance(value, int) and abs(value) > _LARGEST:
            fault = f"expected a whole number of at most {_LARGEST}; got {value}"
            raise UserError(fault, key, "Nothing was started: no machine has enough memory for that")


def _check_whole(key: str, value: object, minimum: int, *, optional: bool = False) -> None:
    if value is None and optional:
        return
    if not isinstance(value, int) or isinstance(value, bool) or value < minimum:
        alternative = ", or null" if optional else ""
        raise UserError(f"expected a whole number of at least {minimum}{alternative}; got {value}", key)


def _check_choice(key: str, value: object, choices: Sequence[str], remedy: str = "") -> None:
    if value not in choices:
        fault = f"expected {', '.join(choices[:-1])} or {choices[-1]}; got {value}"
        raise UserError(fault, key, remedy or did_you_mean(str(value), choices))


def _check_parallel(config: DictConfig) -> None:
    """Raises a UserError if a cluster cannot share the cases, or cannot be reached."""
    address = config.dask.address
    _check_choice("parallel", config.parallel, ("local", "dask"))
    if config.parallel == "local":
        if address is not None:
            fault = "an address is given, and no cluster is asked for"
            raise UserError(fault, f"dask.address={address}", "Add parallel=dask, or leave it out")
        return
    if config.learn:
        raise nothing_to_share()
    with as_user_error("parallel=dask" if address is None else f"dask.address={address}"):
        require_dask()
        if address is not None:
            check_reachable(str(address))


def _check_claims(config: DictConfig) -> None:
    """Raises a UserError for claims that the run cannot make."""
    _check_choice("claims", config.claims, ("in_sample", "cross_fitted"))
    if config.claims == "in_sample":
        return
    if config.learn:
        fault = "an online run fits again after each round, so that its claims have no fixed rows"
        raise UserError(fault, "claims=cross_fitted", "Leave one of claims= and learn= out")
    if config.checkpoint is not None:
        fault = "cross-fitted claims need fits to parts of the rows, and a checkpoint holds one fit"
        remedy = "Leave checkpoint= out, so that the surrogate is fitted here"
        raise UserError(fault, "claims=cross_fitted", remedy)


def _check_auto(config: DictConfig, typed: Sequence[str]) -> None:
    """Raises a UserError for overrides that decision=auto, which compares methods, cannot use."""
    if "choose" not in config:
        return
    parts = ("surrogate", "objective", "search", "certificate")
    arg = next((arg for arg in typed if arg.lstrip("+~").startswith(parts)), None)
    if arg is not None:
        fault = f"methods are compared with their own settings, so that {arg} would belong to none of them"
        raise UserError(fault, "decision=auto", "Leave it out, or name the method that it is for")
    if config.learn or config.checkpoint is not None:
        fault = "methods are compared on the rows of a table, each fitted several times"
        remedy = f"Leave {'learn=' if config.learn else 'checkpoint='} out, or name a method"
        raise UserError(fault, "decision=auto", remedy)


def _check_checkpoint(config: DictConfig, script: str, jobs: Sequence[Sequence[str]]) -> None:
    if config.checkpoint is None:
        if script == "decide":
            refuse_shards_without_checkpoint(config)
        return
    if script != "decide":
        fault = "this command fits surrogates, and does not load one"
        raise UserError(fault, "checkpoint", f"Use {spoken('decide')}, or leave checkpoint= out")
    overrides = [arg for job in jobs for arg in job]
    folder = checkpoint_in(config.checkpoint)
    if folder is None or not checked(read_yaml(folder / "config.yaml"), str(folder / "config.yaml"), {}):
        exists = Path(config.checkpoint).is_dir()
        example = next((arg for arg in overrides if arg.startswith("+experiment=")), "+experiment=sepsis")
        fault = "this folder holds no checkpoint" if exists else "there is no such folder"
        remedy = suggestion(config.checkpoint) or f"Train one: {spoken('train')} {example}"
        raise UserError(fault, f"checkpoint={config.checkpoint}", remedy)
    part = next((arg for arg in overrides if arg.lstrip("+").startswith(("surrogate=", "surrogate."))), None)
    if part is not None:
        fault = f"a checkpoint brings its own surrogate, so {part} would change nothing"
        raise UserError(fault, "checkpoint", "Leave one of the two out")


def refuse_shards_without_checkpoint(config: DictConfig) -> None:
    """Raises a UserError for a shard that would fit a surrogate of its own."""
    if config.checkpoint is None and int(config.shards) > 1:
        fault = "each shard would fit its own surrogate"
        raise UserError(fault, "checkpoint", "Train first, then give checkpoint=FOLDER")


def nothing_to_share() -> UserError:
    """The error of an online run with a cluster."""
    fault = "each round of an online run needs those before it, so that a cluster has nothing to share"
    return UserError(fault, "parallel=dask", "Leave it out")


def refuse_unread(
    config: DictConfig, script: str, jobs: Sequence[Sequence[str]], typed: Sequence[str]
) -> None:
    """Raises a UserError for a file that the data set of the run does not read."""
    if config.path is None or _reads_path(plain_value(config)):
        return
    # A sweep over data sets may have the file for another of its jobs.
    if len({tuple(text for text in job if text.startswith(_DATASET_OVERRIDES)) for job in jobs}) > 1:
        return
    file = str(config.path)
    if Path(file).is_dir():
        remedy = (
            "Name a problem file (.yaml); a run is continued by resume=FOLDER, and what a run has fitted is "
            "named by checkpoint=FOLDER"
        )
    elif is_table(file):
        remedy = of_table(
            file, on_file(script if script in ("train", "options") else "decide", "problem.yaml")
        )
    else:
        init = on_file("init", "table.csv", "data")
        remedy = f"Name a problem file (.yaml), which is made of a table by {init}"
    dataset = next((text for text in typed if text.startswith(_DATASET_OVERRIDES)), "")
    source = (
        f"the data of {dataset} are not read from a file"
        if dataset
        else "neither a problem file nor an experiment says what is asked of it"
    )
    raise UserError(f"{source}, so that it would be ignored", file, remedy)


def _reads_path(node: Any) -> bool:
    """Whether a value of the configuration refers to the path."""
    if isinstance(node, dict):
        return any(_reads_path(value) for key, value in node.items() if key != "hydra")
    if isinstance(node, list):
        return any(map(_reads_path, node))
    return isinstance(node, str) and "${path}" in node
