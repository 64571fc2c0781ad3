"""The verb init: writes a first problem file from a table, which its author corrects and fills in.

Nothing is asked, and no file is overwritten without force=true.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from rehearsal_torch.cli.errors import writing_to
from rehearsal_torch.cli.spelling import on_file
from rehearsal_torch.cli.subcommand import Option, Verb
from rehearsal_torch.problems.written.recognised import YAML
from rehearsal_torch.user_error import UserError, as_user_error


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command with the arguments after its name, or those of the process; returns the exit code."""
    return VERB.main(arguments, "Interrupted; nothing was written.")


def init(options: Mapping[str, str]) -> int:
    """Writes a first problem file.

    Raises:
        UserError: if the table cannot be used, or the file exists.
    """
    out = Path(options["out"])
    if out.suffix.lower() not in YAML:
        raise UserError("expected a file that ends in .yaml", f"out={out}", "For example: out=problem.yaml")
    if (out.exists() or out.is_symlink()) and options["force"] != "true":
        raise UserError("exists already", f"out={out}", "Name another file with out=, or add force=true")
    from rehearsal_torch.data.reading import read_table
    from rehearsal_torch.files.writing import write_text
    from rehearsal_torch.problems.written.draft_columns import check_names
    from rehearsal_torch.problems.written.first_draft import first_draft
    from rehearsal_torch.problems.written.sequence_draft import dated, sequence_draft, unit_and_time
    from rehearsal_torch.problems.written.trials_draft import trials_draft

    question = options["question"]
    with as_user_error("init"):
        table = read_table(options["data"], "data")
        check_names(table)
        file = Path(os.path.relpath(Path(options["data"]).resolve(), out.parent.resolve())).as_posix()
        episodes = unit_and_time(table.frame) if question in ("auto", "sequence") else None
        if question == "trials":
            text = trials_draft(table, file, str(out))
        elif question == "sequence" or episodes is not None:
            text = sequence_draft(table, file, str(out), episodes)
        else:
            text = first_draft(table, file, str(out))
    with writing_to(out, "Name a file in a folder that can be written to by out=FILE"):
        write_text(out, text)
    for note in table.notes:
        print(f"Note: {note}.")
    if question == "auto" and episodes is not None:
        print(
            f"The table has several rows for each {episodes.unit}, one for each {episodes.time}: the file "
            "asks for a sequence. Add question=cases to decide for rows."
        )
    if question == "auto" and episodes is None and (maybe := dated(table.frame)) is not None:
        print(
            f"Note: the table has several rows for each {maybe.unit}, one for each {maybe.time}. Add "
            "question=sequence to decide on what is done step by step."
        )
    print(f"Written: {out}. Correct the guessed roles, fill in the lines that are marked, and type")
    print(f"  {on_file('check', str(out), 'problem')}")
    return 0


VERB = Verb(
    "init",
    "Writes a first problem file from a table: guesses kinds and roles, and marks what is to be filled in.",
    (
        Option("data", "the table: .csv, .tsv, .xlsx, .parquet, ..., with a header row", required=True),
        Option("out", "the problem file", "problem.yaml"),
        Option(
            "question",
            "cases (which alteration in each), sequence (which actions step by step), trials (which "
            "experiment next); auto tells a table of episodes by its columns of units and time",
            "auto",
            ("auto", "cases", "sequence", "trials"),
        ),
        Option("force", "overwrites the file", "false", ("true", "false")),
    ),
    init,
    "init",
)
