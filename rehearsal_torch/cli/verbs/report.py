"""The verb report: writes the page of run folders, and a page that compares several runs.

Nothing is fitted or decided again: the page shows the folder's records. ``figures=true`` draws figures anew.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from rehearsal_torch.cli.errors import check_own_file, of_edited_file
from rehearsal_torch.files.atomic_write import write_text
from rehearsal_torch.reporting.page.html import MARK
from rehearsal_torch.reporting.page.page_content import Material, material
from rehearsal_torch.reporting.page.run_comparison import comparing_page
from rehearsal_torch.reporting.page.run_page import FILE, page
from rehearsal_torch.reporting.run_report import draw
from rehearsal_torch.run_folder import RunFolder
from rehearsal_torch.user_error import UserError, user_error_from


def report(runs: Sequence[Path], given: Mapping[str, str]) -> int:
    """Writes the pages of runs, and the one that compares them; returns 0."""
    if "out" in given:
        if len(runs) < 2:
            raise UserError(
                "there is one run, and a page that compares needs two",
                f"out={given['out']}",
                "Leave it out: the page of a run is report.html in its folder",
            )
        check_own_file(Path(given["out"]), MARK)
    pages, faults = list[Material](), list[UserError]()
    for run in runs:
        try:
            pages.append(_write_page(run, given))
        except Exception as error:
            fault = _as_user_error(error, run)
            if fault is None:
                raise
            faults.append(fault)
    if faults:
        raise UserError("\n".join(str(error) for error in faults).rstrip("."))
    if "out" in given:
        text = comparing_page(pages, int(given["cases"]))
        print(f"Written: {write_text(given['out'], text)}", flush=True)
    return 0


def _write_page(path: Path, given: Mapping[str, str]) -> Material:
    """Writes the page of a run."""
    if not path.is_dir():
        fault = "there is no such folder"
        raise UserError(fault, str(path), "Give the folder of a run, such as runs/auf/FOLDER")
    if (path / "sweep.json").is_file():
        raise UserError("is the folder of a sweep", str(path), f"Give the folders of its jobs: {path}/*/")
    content = material(path, cases=int(given["cases"]), rows=given["rows"] == "true", ended=False)
    if not content.run.decisions:
        fault = "holds no decisions yet, so that there is nothing to report"
        raise UserError(fault, str(path), "Finish the run")
    with RunFolder(path).lock():
        if given["figures"] == "true":
            draw(content.run)
        print(f"Written: {write_text(path / FILE, page(content))}", flush=True)
    return content


def _as_user_error(error: Exception, run: Path) -> UserError | None:
    """An error of one run as a `UserError` that names the run; None for a bug."""
    if isinstance(error, FileNotFoundError):
        return UserError(str(error), "", "Give the folder of a run, such as runs/auf/FOLDER")
    fault = user_error_from(error)
    if fault is not None:
        return fault if run.name in str(fault) else UserError(str(error), str(run))
    remedy = "Restore changed files from a copy, or run it again in another folder"
    return of_edited_file(error, "no page can be made of", run, remedy)
