"""Files that a command would not read, and tables that are given in the place of a problem file.

What is typed is never ignored: a file that the composed data set does not read is refused, with what to type
in its place. Of a table, that is the same wherever it is given: init writes a problem file of it.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from rehearsal_torch.cli.spelling import on_file
from rehearsal_torch.problems.written.recognised import problem_content
from rehearsal_torch.user_error import UserError

# The overrides that choose the data set of a run.
_CHOOSING = ("+experiment=", "dataset=")
_TABLES = (".csv", ".tsv", ".txt", ".gz", ".xlsx", ".xlsm", ".parquet", ".feather", ".arrow")
# The problem file that init writes.
_WRITTEN = "problem.yaml"


def refuse_unread(
    config: DictConfig, script: str, jobs: Sequence[Sequence[str]], typed: Sequence[str]
) -> None:
    """Refuses a file that the data set of the run does not read.

    Raises:
        UserError: with what to type in its place.
    """
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
        remedy = of_table(file, on_file(script if script in ("train", "options") else "decide", _WRITTEN))
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


def refuse_table(file: str) -> None:
    """Refuses a table in the place of the problem file that is checked.

    Raises:
        UserError: with the command that writes the problem file.
    """
    if is_table(file) and Path(file).is_file() and problem_content(file) is None:
        raise UserError(
            "this is a table, and check reads a problem file",
            file,
            of_table(file, on_file("check", _WRITTEN, "problem")),
        )


def is_table(file: str) -> bool:
    """Whether the name of a file ends as that of a table."""
    return Path(file).suffix.lower() in _TABLES


def of_table(file: str, then: str) -> str:
    """What to do with a table: to write a problem file of it."""
    first = on_file("init", file, "data")
    return (
        "Write a problem file of this table, which says what may be set and what is desired: "
        f"{first}, then {then}"
    )


def _reads_path(node: Any) -> bool:
    """Whether a value of the configuration is the path, or is made of it."""
    if isinstance(node, dict):
        return any(_reads_path(value) for key, value in node.items() if key != "hydra")
    if isinstance(node, list):
        return any(map(_reads_path, node))
    return isinstance(node, str) and "${path}" in node
