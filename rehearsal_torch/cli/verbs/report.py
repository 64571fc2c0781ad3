"""The verb report: writes the page of run folders, and a page that compares several runs.

The page is made of what the folder holds: nothing is fitted or decided again. Of the pictures, the graph is
drawn each time, and the figures where that is asked for, from the records of the run.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from rehearsal_torch.cli.errors import begins
from rehearsal_torch.cli.spelling import spoken
from rehearsal_torch.files.addresses import beginning
from rehearsal_torch.files.writing import write_text
from rehearsal_torch.reporting.page.markup import MARK
from rehearsal_torch.reporting.page.material import Material, material
from rehearsal_torch.reporting.page.run_page import FILE, page
from rehearsal_torch.reporting.page.several_runs import comparing_page
from rehearsal_torch.reporting.run_report import draw
from rehearsal_torch.run_folder import RunFolder
from rehearsal_torch.user_error import UserError, user_error_from

MOST = 10_000


def report(runs: Sequence[Path], given: Mapping[str, str]) -> int:
    """Writes the pages of runs, and the one that compares them; returns 0.

    Raises:
        UserError: for an error in the arguments, or of one of the folders.
    """
    if not runs:
        raise UserError(
            "expected at least one run folder", "", f"For example: {spoken('report')} runs/auf/FOLDER"
        )
    if not given["cases"].isdecimal() or not 1 <= int(given["cases"]) <= MOST:
        raise UserError(f"expected a whole number from 1 to {MOST:,}", f"cases={given['cases']}")
    if "out" in given:
        if len(runs) < 2:
            raise UserError(
                "there is one run, and a page that compares needs two",
                f"out={given['out']}",
                "Leave it out: the page of a run is report.html in its folder",
            )
        _check_free(Path(given["out"]))
    pages, faults = list[Material](), list[UserError]()
    for run in runs:
        try:
            pages.append(_written(run, given))
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


def _written(path: Path, given: Mapping[str, str]) -> Material:
    """Writes the page of a run."""
    if not path.is_dir():
        raise UserError(
            "there is no such folder", str(path), "Give the folder of a run, such as runs/auf/FOLDER"
        )
    if (path / "sweep.json").is_file():
        raise UserError("is the folder of a sweep", str(path), f"Give the folders of its jobs: {path}/*/")
    content = material(path, cases=int(given["cases"]), rows=given["rows"] == "true", ended=False)
    if not content.run.decisions:
        raise UserError(
            "holds no decisions yet, so that there is nothing to report", str(path), "Finish the run"
        )
    with RunFolder(path).lock():
        if given["figures"] == "true":
            draw(content.run)
        print(f"Written: {write_text(path / FILE, page(content))}", flush=True)
    return content


def _check_free(path: Path) -> None:
    """Refuses to overwrite what this command did not write."""
    if path.is_dir():
        raise UserError("is a folder", f"out={path}", "Name a file, such as comparison.html")
    if path.exists() and not begins(path, MARK):
        raise UserError(
            "exists already, and was not written by this command", f"out={path}", "Name another file"
        )


def _as_user_error(error: Exception, run: Path) -> UserError | None:
    """An error of one run in words; None for a bug.

    What would otherwise count as a bug is most often caused by an edited file of the folder.
    """
    if isinstance(error, FileNotFoundError):
        return UserError(str(error), "", "Give the folder of a run, such as runs/auf/FOLDER")
    known = user_error_from(error)
    if known is not None:
        return known if run.name in str(known) else UserError(str(error), str(run))
    if isinstance(error, LookupError | TypeError | AttributeError | ValueError):
        text = beginning(" ".join(str(error).split()), 200)
        return UserError(
            f"no page can be made of the content of the folder ({type(error).__name__}: {text})",
            str(run),
            "Restore changed files from a copy, or run it again in another folder",
        )
    return None
