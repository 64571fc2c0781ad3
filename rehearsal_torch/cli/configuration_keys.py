"""Validation of the configuration's own keys, before anything is imported or written."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from rehearsal_torch.cli.command_words import is_table, of_table, on_file, spoken
from rehearsal_torch.dask_cluster import check_reachable, require_dask
from rehearsal_torch.data.size_limits import check_seed
from rehearsal_torch.files.bounded_yaml import checked, read_yaml
from rehearsal_torch.files.redaction import check_no_user
from rehearsal_torch.files.similar_names import beside, checkpoint_in, near_files, suggestion
from rehearsal_torch.methods.hydra_config import CONF
from rehearsal_torch.user_error import UserError, as_user_error, choose_from, did_you_mean

# The overrides that choose the data set of a run.
_CHOOSING = ("+experiment=", "dataset=")
# The overrides that determine the data of a run.
_DATA = ("+experiment=", "dataset=", "dataset.", "+dataset.", "++dataset.", "path=", "checkpoint=")


def check(config: DictConfig, script: str, jobs: Sequence[Sequence[str]], typed: Sequence[str]) -> None:
    """Checks that numbers are in range, that input files and folders exist, and that the data of the run are
    given.
    """
    with as_user_error(""):
        check_seed(config.seed)
    for key, least in (
        ("limit", 1),
        ("preview", 1),
        ("workers", 1),
        ("folds", 2),
        ("shards", 1),
        ("shard", 0),
    ):
        _whole(key, config[key], least, optional=key in ("limit", "workers"))
    for key in ("tables", "quiet"):
        if not isinstance(config[key], bool):
            raise UserError(f"expected true or false; got {config[key]}", key)
    _one_of("split", config.split, ("train", "validation", "test"))
    if "changes" in config.objective:
        _whole("objective.changes", config.objective.changes, 0)
    unless = "Choose by=patient, unless a comparison requires the other"
    _one_of("by", config.by, ("patient", "transition"), unless)
    _parallel(config)
    for name, node in (config.get("logger") or {}).items():
        if isinstance(node, DictConfig):
            with as_user_error(""):
                check_no_user(node.get("tracking_uri"), f"logger.{name}.tracking_uri")
    _claims(config)
    _choice(config, typed)
    shards = [int(text.partition("=")[2]) for job in jobs for text in job if text.startswith("shard=")]
    last = max(shards, default=int(config.shard))
    if last >= int(config.shards):
        what = f"expected shards 0 to {int(config.shards) - 1}; got {last}"
        raise UserError(what, "shard", f"Give shards={last + 1}, or another shard")
    if "path" in config.dataset and config.dataset.path is None:
        raise UserError("this data set is read from a file, which must be given", "path", "Add path=FILE")
    if config.path is not None and not Path(config.path).exists():
        near = near_files(Path(config.path))[:2]
        remedy = f"Did you mean {' or '.join(near)}?" if near else choose_from(beside(Path(config.path)))
        raise UserError("there is no such file or folder", f"path={config.path}", remedy)
    refuse_unread(config, script, jobs, typed)
    _sizes(config)
    _checkpoint(config, script, jobs)
    if not any(text.startswith(_DATA) for text in typed):
        raise UserError("no data are given", "", _what_to_type(script))


def _what_to_type(script: str) -> str:
    """Example commands, for a command line without data."""
    line, task = spoken(script), "dataset.task=task.yaml"
    experiments = ", ".join(path.stem for path in sorted((CONF / "experiment").glob("*.yaml")))
    words = [f"Type, for example, {line} +experiment=sepsis (experiments: {experiments})"]
    if script == "decide":
        words += [
            f"or your own table: {line} +experiment=own_table path=table.csv {task}",
            f"or your own problem file: {on_file(script, 'problem.yaml')}",
            f"or your own experiments: {line} +experiment=own_system path=experiments.csv {task}",
            f"or with a trained surrogate: {line} +experiment=sepsis checkpoint=FOLDER",
        ]
    return "; ".join([*words, f"{line} --help shows all options"])


# Groups whose whole numbers determine the memory and time of a run, and their upper bound; seeds are not
# bounded.
_SIZED, _LARGEST = ("dataset", "surrogate", "objective", "search", "certificate", "trainer"), 10**8


def _sizes(config: DictConfig) -> None:
    waiting: list[tuple[str, Any]] = [
        (group, OmegaConf.to_container(config[group], resolve=True)) for group in _SIZED
    ]
    while waiting:
        key, value = waiting.pop()
        if isinstance(value, dict):
            waiting += [(f"{key}.{name}", item) for name, item in value.items() if name != "seed"]
        elif isinstance(value, list):
            waiting += [(f"{key}[{place}]", item) for place, item in enumerate(value)]
        elif isinstance(value, int) and abs(value) > _LARGEST:
            raise UserError(
                f"expected a whole number of at most {_LARGEST}; got {value}",
                key,
                "Nothing was started: no machine has enough memory for that",
            )


def _whole(key: str, value: object, minimum: int, *, optional: bool = False) -> None:
    if value is None and optional:
        return
    if not isinstance(value, int) or isinstance(value, bool) or value < minimum:
        raise UserError(
            f"expected a whole number of at least {minimum}{', or null' if optional else ''}; got {value}",
            key,
        )


def _one_of(key: str, value: object, choices: Sequence[str], remedy: str = "") -> None:
    if value not in choices:
        raise UserError(
            f"expected {', '.join(choices[:-1])} or {choices[-1]}; got {value}",
            key,
            remedy or did_you_mean(str(value), choices),
        )


def _parallel(config: DictConfig) -> None:
    """Checks who shares the cases: a cluster must be able to, and something must listen at its address."""
    address = config.dask.address
    _one_of("parallel", config.parallel, ("local", "dask"))
    if config.parallel == "local":
        if address is not None:
            what = "an address is given, and no cluster is asked for"
            raise UserError(what, f"dask.address={address}", "Add parallel=dask, or leave it out")
        return
    if config.learn:
        raise nothing_to_share()
    with as_user_error("parallel=dask" if address is None else f"dask.address={address}"):
        require_dask()
        if address is not None:
            check_reachable(str(address))


def _claims(config: DictConfig) -> None:
    """Checks where claims come from."""
    _one_of("claims", config.claims, ("in_sample", "cross_fitted"))
    if config.claims == "in_sample":
        return
    if config.learn:
        what = "an online run fits again after each round, so that its claims have no fixed rows"
        raise UserError(what, "claims=cross_fitted", "Leave one of claims= and learn= out")
    if config.checkpoint is not None:
        what = "cross-fitted claims need fits to parts of the rows, and a checkpoint holds one fit"
        remedy = "Leave checkpoint= out, so that the surrogate is fitted here"
        raise UserError(what, "claims=cross_fitted", remedy)


def _choice(config: DictConfig, typed: Sequence[str]) -> None:
    """Checks what is typed beside decision=auto, which compares methods with their own settings."""
    if "choose" not in config:
        return
    parts = ("surrogate", "objective", "search", "certificate")
    given = next((text for text in typed if text.lstrip("+~").startswith(parts)), None)
    if given is not None:
        what = f"methods are compared with their own settings, so that {given} would belong to none of them"
        raise UserError(what, "decision=auto", "Leave it out, or name the method that it is for")
    if config.learn or config.checkpoint is not None:
        what = "methods are compared on the rows of a table, each fitted several times"
        remedy = f"Leave {'learn=' if config.learn else 'checkpoint='} out, or name a method"
        raise UserError(what, "decision=auto", remedy)


def _checkpoint(config: DictConfig, script: str, jobs: Sequence[Sequence[str]]) -> None:
    if config.checkpoint is None:
        if script == "decide":
            refuse_shards_without_checkpoint(config)
        return
    if script != "decide":
        what = "this command fits surrogates, and does not load one"
        raise UserError(what, "checkpoint", f"Use {spoken('decide')}, or leave checkpoint= out")
    words = [text for job in jobs for text in job]
    folder = checkpoint_in(config.checkpoint)
    if folder is None or not checked(read_yaml(folder / "config.yaml"), str(folder / "config.yaml"), {}):
        there = Path(config.checkpoint).is_dir()
        own = next((text for text in words if text.startswith("+experiment=")), "+experiment=sepsis")
        raise UserError(
            "this folder holds no checkpoint" if there else "there is no such folder",
            f"checkpoint={config.checkpoint}",
            suggestion(config.checkpoint) or f"Train one: {spoken('train')} {own}",
        )
    bound = next((text for text in words if text.lstrip("+").startswith(("surrogate=", "surrogate."))), None)
    if bound is not None:
        what = f"a checkpoint brings its own surrogate, so {bound} would change nothing"
        raise UserError(what, "checkpoint", "Leave one of the two out")


def refuse_shards_without_checkpoint(config: DictConfig) -> None:
    """Refuses a shard that would fit a surrogate of its own."""
    if config.checkpoint is None and int(config.shards) > 1:
        what = "each shard would fit its own surrogate"
        raise UserError(what, "checkpoint", "Train first, then give checkpoint=FOLDER")


def nothing_to_share() -> UserError:
    """What is said of an online run with a cluster."""
    what = "each round of an online run needs those before it, so that a cluster has nothing to share"
    return UserError(what, "parallel=dask", "Leave it out")


def refuse_unread(
    config: DictConfig, script: str, jobs: Sequence[Sequence[str]], typed: Sequence[str]
) -> None:
    """Refuses a file that the data set of the run does not read."""
    if config.path is None or _reads_path(OmegaConf.to_container(config, resolve=False)):
        return
    # A sweep over data sets may have the file for another of its jobs.
    if len({tuple(text for text in job if text.startswith(_CHOOSING)) for job in jobs}) > 1:
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
        first = on_file("init", "table.csv", "data")
        remedy = f"Name a problem file (.yaml), which is made of a table by {first}"
    named = next((text for text in typed if text.startswith(_CHOOSING)), "")
    who = (
        f"the data of {named} are not read from a file"
        if named
        else "neither a problem file nor an experiment says what is asked of it"
    )
    raise UserError(f"{who}, so that it would be ignored", file, remedy)


def _reads_path(node: Any) -> bool:
    """Whether a value of the configuration is the path, or is made of it."""
    if isinstance(node, dict):
        return any(_reads_path(value) for key, value in node.items() if key != "hydra")
    if isinstance(node, list):
        return any(map(_reads_path, node))
    return isinstance(node, str) and "${path}" in node
