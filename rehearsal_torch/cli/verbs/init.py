"""The verb init: writes a first problem file from a table, which its author corrects and fills in.

Roles that are neither typed as options nor clear from the table are asked for at a terminal; without one they
are left blank in the file.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from rehearsal_torch.cli.command_words import on_file
from rehearsal_torch.cli.errors import writing_to
from rehearsal_torch.data.tables.reader import TableError
from rehearsal_torch.files.atomic_write import write_text
from rehearsal_torch.problems.drafts.draft_yaml import YAML
from rehearsal_torch.problems.drafts.problem_draft import draft
from rehearsal_torch.problems.drafts.role_guesses import typed_names
from rehearsal_torch.user_error import UserError, as_user_error


def init(options: Mapping[str, str]) -> int:
    """Writes a first problem file; returns 0."""
    out = Path(options["out"])
    if out.suffix.lower() not in YAML:
        raise UserError("expected a file that ends in .yaml", f"out={out}", "For example: out=problem.yaml")
    if (out.exists() or out.is_symlink()) and options["force"] != "true":
        raise UserError("exists already", f"out={out}", "Name another file with out=, or add force=true")
    typed = {option: options[option] for option in ("outcome", "action", "unit", "time") if option in options}
    terminal = sys.stdin.isatty() and sys.stdout.isatty()
    with as_user_error("init"):
        text, notes = draft(options["data"], out, options["question"], typed, ask if terminal else None)
    with writing_to(out, "Name a file in a folder that can be written to by out=FILE"):
        write_text(out, text)
    for note in notes:
        print(note)
    print(f"Written: {out}. Correct the guessed roles, fill in the lines that are marked, and type")
    print(f"  {on_file('check', str(out), 'problem')}")
    return 0


def ask(words: str, option: str, names: Sequence[str]) -> list[str]:
    """The names that a user types in answer to a question; none for an empty line."""
    print(f"{words} One of: {', '.join(names)}")
    while True:
        try:
            text = input(f"{option}= (Enter leaves it open) ")
        except EOFError:
            print()
            raise UserError("the input ended before the answer; nothing was written", f"{option}=") from None
        try:
            return typed_names(text, option, names) if text.strip() else []
        except TableError as error:
            print(error)
