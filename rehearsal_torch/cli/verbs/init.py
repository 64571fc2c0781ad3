"""The verb init: writes a first problem file from a table, which its author corrects and fills in.

Nothing is asked, and no file is overwritten without force=true.
"""

from collections.abc import Mapping
from pathlib import Path

from rehearsal_torch.cli.errors import writing_to
from rehearsal_torch.cli.spelling import on_file
from rehearsal_torch.files.writing import write_text
from rehearsal_torch.problems.written.first_draft import draft
from rehearsal_torch.problems.written.recognised import YAML
from rehearsal_torch.user_error import UserError, as_user_error


def init(options: Mapping[str, str]) -> int:
    """Writes a first problem file."""
    out = Path(options["out"])
    if out.suffix.lower() not in YAML:
        raise UserError("expected a file that ends in .yaml", f"out={out}", "For example: out=problem.yaml")
    if (out.exists() or out.is_symlink()) and options["force"] != "true":
        raise UserError("exists already", f"out={out}", "Name another file with out=, or add force=true")
    with as_user_error("init"):
        text, notes = draft(options["data"], out, options["question"])
    with writing_to(out, "Name a file in a folder that can be written to by out=FILE"):
        write_text(out, text)
    for note in notes:
        print(note)
    print(f"Written: {out}. Correct the guessed roles, fill in the lines that are marked, and type")
    print(f"  {on_file('check', str(out), 'problem')}")
    return 0
