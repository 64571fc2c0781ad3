"""The rows of the file that a problem file names."""

from pathlib import Path

from rehearsal_torch.data.problem_file.findings import Findings
from rehearsal_torch.data.problem_file.form import DataForm
from rehearsal_torch.data.reading import ReadTable, TableError, read_table
from rehearsal_torch.files.nearby import near_files


def rows_of(form: DataForm, folder: Path, part: str, found: Findings) -> ReadTable | None:
    """Reads rows; None with a fault.

    Args:
        form: Where they come from.
        folder: The folder that a relative file is in.
        part: The key of the problem file.
        found: Collects faults.
    """
    faults: list[str] = []
    file = folder / form.file
    if not file.is_file():
        found.fault(part, _missing(file))
        return None
    try:
        table = read_table(
            file, part, faults, separator=form.separator, decimal=form.decimal, sheet=form.sheet
        )
    except TableError as error:
        found.fault(part, str(error))
        return None
    for each in faults:
        found.fault(part, f"{table.where}: {each}")
    return table


def _missing(file: Path) -> str:
    if file.is_dir():
        return f"there is a folder, not a file, at {file}"
    near = near_files(file)
    remedy = (
        f"did you mean {near[0]!r}?" if near else "the name is relative to the folder of the problem file"
    )
    return f"there is no file {file}: {remedy}"
