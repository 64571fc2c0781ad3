"""Validation of the configuration's own keys, before anything is imported or written."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from rehearsal_torch.cli.choice.unread_file import refuse_unread
from rehearsal_torch.cli.spelling import on_file, spoken
from rehearsal_torch.cluster import check_reachable, require_dask
from rehearsal_torch.data.sizes import check_seed
from rehearsal_torch.files.addresses import check_no_user
from rehearsal_torch.files.nearby import beside, checkpoint_in, near_files, suggestion
from rehearsal_torch.files.plain import checked, read_yaml
from rehearsal_torch.methods.conf import CONF
from rehearsal_torch.user_error import UserError, as_user_error, choose_from, did_you_mean

# The overrides that determine the data of a run.
_DATA = ("+experiment=", "dataset=", "dataset.", "+dataset.", "++dataset.", "path=", "checkpoint=")


def check(config: DictConfig, script: str, jobs: Sequence[Sequence[str]], typed: Sequence[str]) -> None:
    """Checks that numbers are in range, that input files and folders exist, and that the data of the run are
    given.

    Raises:
        UserError: for the first key that is out of range.
    """
    with as_user_error(""):
        check_seed(config.seed)
    for key in ("limit", "preview", "workers"):
        _whole(key, config[key], 1, optional=key != "preview")
    for key in ("tables", "quiet"):
        if not isinstance(config[key], bool):
            raise UserError(f"expected true or false; got {config[key]}", key)
    _one_of("split", config.split, ("train", "validation", "test"))
    if "changes" in config.objective:
        _whole("objective.changes", config.objective.changes, 0, optional=False)
    _whole("folds", config.folds, 2, optional=False)
    unless = "Choose by=patient, unless a comparison requires the other"
    _one_of("by", config.by, ("patient", "transition"), unless)
    _parallel(config)
    for name, node in (config.get("logger") or {}).items():
        if isinstance(node, DictConfig):
            with as_user_error(""):
                check_no_user(node.get("tracking_uri"), f"logger.{name}.tracking_uri")
    _claims(config)
    _choice(config, typed)
    _whole("shards", config.shards, 1, optional=False)
    _whole("shard", config.shard, 0, optional=False)
    shards = {int(text.partition("=")[2]) for job in jobs for text in job if text.startswith("shard=")} or {
        int(config.shard)
    }
    if max(shards) >= int(config.shards):
        raise UserError(
            f"expected shards 0 to {int(config.shards) - 1}; got {max(shards)}",
            "shard",
            f"Give shards={max(shards) + 1}, or another shard",
        )
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
    line = spoken(script)
    experiments = ", ".join(path.stem for path in sorted((CONF / "experiment").glob("*.yaml")))
    words = [f"Type, for example, {line} +experiment=sepsis (experiments: {experiments})"]
    if script == "decide":
        words.append(f"or your own table: {line} +experiment=own_table path=table.csv dataset.task=task.yaml")
        words.append(f"or your own problem file: {on_file(script, 'problem.yaml')}")
        words.append(
            f"or your own experiments: {line} +experiment=own_system path=experiments.csv "
            "dataset.task=task.yaml"
        )
        words.append(f"or with a trained surrogate: {line} +experiment=sepsis checkpoint=FOLDER")
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


def _whole(key: str, value: object, minimum: int, *, optional: bool) -> None:
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
    kind, address = config.parallel, config.dask.address
    _one_of("parallel", kind, ("local", "dask"))
    if kind == "local":
        if address is not None:
            raise UserError(
                "an address is given, and no cluster is asked for",
                f"dask.address={address}",
                "Add parallel=dask, or leave it out",
            )
        return
    if config.learn:
        what = "each round of an online run needs those before it"
        raise UserError(f"{what}, so that a cluster has nothing to share", "parallel=dask", "Leave it out")
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
        raise UserError(
            "an online run fits again after each round, so that its claims have no fixed rows",
            "claims=cross_fitted",
            "Leave one of claims= and learn= out",
        )
    if config.checkpoint is not None:
        raise UserError(
            "cross-fitted claims need fits to parts of the rows, and a checkpoint holds one fit",
            "claims=cross_fitted",
            "Leave checkpoint= out, so that the surrogate is fitted here",
        )


def _choice(config: DictConfig, typed: Sequence[str]) -> None:
    """Checks what is typed beside decision=auto, which compares methods with their own settings."""
    if "choose" not in config:
        return
    parts = ("surrogate", "objective", "search", "certificate")
    given = next((text for text in typed if text.lstrip("+~").startswith(parts)), None)
    if given is not None:
        raise UserError(
            f"methods are compared with their own settings, so that {given} would belong to none of them",
            "decision=auto",
            "Leave it out, or name the method that it is for",
        )
    if config.learn or config.checkpoint is not None:
        raise UserError(
            "methods are compared on the rows of a table, each fitted several times",
            "decision=auto",
            f"Leave {'learn=' if config.learn else 'checkpoint='} out, or name a method",
        )


def _checkpoint(config: DictConfig, script: str, jobs: Sequence[Sequence[str]]) -> None:
    if config.checkpoint is None:
        if int(config.shards) > 1 and script == "decide":
            raise UserError(
                "each shard would fit its own surrogate",
                "checkpoint",
                "Train first, then give checkpoint=FOLDER",
            )
        return
    if script != "decide":
        raise UserError(
            "this command fits surrogates, and does not load one",
            "checkpoint",
            f"Use {spoken('decide')}, or leave checkpoint= out",
        )
    if not surrogate_in(str(config.checkpoint)):
        own = [text for job in jobs for text in job if text.startswith("+experiment=")]
        raise UserError(
            "this folder holds no checkpoint"
            if Path(config.checkpoint).is_dir()
            else "there is no such folder",
            f"checkpoint={config.checkpoint}",
            suggestion(config.checkpoint)
            or f"Train one: {spoken('train')} {own[0] if own else '+experiment=sepsis'}",
        )
    bound = next(
        (text for job in jobs for text in job if text.lstrip("+").startswith(("surrogate=", "surrogate."))),
        None,
    )
    if bound is not None:
        raise UserError(
            f"a checkpoint brings its own surrogate, so {bound} would change nothing",
            "checkpoint",
            "Leave one of the two out",
        )


def surrogate_in(checkpoint: str) -> dict[str, object]:
    """The configuration of a checkpoint, read without building it; empty if there is none.

    Raises:
        PlainFileError: if its configuration cannot be read.
    """
    found = checkpoint_in(checkpoint)
    if found is None:
        return {}
    return checked(read_yaml(found / "config.yaml"), str(found / "config.yaml"), {})
