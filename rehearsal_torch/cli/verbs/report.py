"""The verb report: writes the page of run folders, and a page that compares several runs.

The page is made of what the folder holds: nothing is fitted or decided again. Of the pictures, the graph is
drawn each time, and the figures where that is asked for, from the records of the run.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rehearsal_torch.cli.errors import begins, exit_code
from rehearsal_torch.cli.spelling import spoken
from rehearsal_torch.cli.subcommand import Option, Verb
from rehearsal_torch.files.addresses import beginning
from rehearsal_torch.run_folder import RunFolder
from rehearsal_torch.user_error import UserError, user_error_from

if TYPE_CHECKING:
    from rehearsal_torch.reporting.page.material import Material

MOST = 10_000
OPTIONS = (
    Option("out", "a file, to which a page that compares the runs is written"),
    Option("rows", "whether the recorded rows of the cases are shown as well", "false", ("true", "false")),
    Option("figures", "whether figures are drawn again from the records", "false", ("true", "false")),
    Option("cases", "how many cases are shown one by one", "20"),
)


def main(arguments: Sequence[str]) -> int:
    """Runs the command.

    Args:
        arguments: The run folders, each as RUN or run=RUN, and the options.

    Returns:
        The exit code: 0, or 2 for an error in the arguments or a folder.
    """
    if not arguments or any(text in ("-h", "--help") for text in arguments):
        print(_help())
        return 0 if arguments else 2
    return exit_code(lambda: _run(arguments), "Interrupted; run the same command again.")


def read(arguments: Sequence[str]) -> tuple[list[Path], dict[str, str]]:
    """The run folders, and the options.

    Raises:
        UserError: for an error in the arguments.
    """
    runs, given = Verb("report", "", OPTIONS, lambda _: 0, "report").read_with_paths(arguments, "run")
    if not runs:
        raise UserError(
            "expected at least one run folder", "", f"For example: {spoken('report')} runs/auf/FOLDER"
        )
    if not given["cases"].isdecimal() or not 1 <= int(given["cases"]) <= MOST:
        raise UserError(f"expected a whole number from 1 to {MOST:,}", f"cases={given['cases']}")
    if "out" in given and len(runs) < 2:
        raise UserError(
            "there is one run, and a page that compares needs two",
            f"out={given['out']}",
            "Leave it out: the page of a run is report.html in its folder",
        )
    return runs, given


def _run(arguments: Sequence[str]) -> int:
    runs, given = read(arguments)
    if "out" in given:
        _free(Path(given["out"]))
    pages, wrong = list["Material"](), list[UserError]()
    for run in runs:
        try:
            pages.append(_written(run, given))
        except Exception as error:
            told = _told(error, run)
            if told is None:
                raise
            wrong.append(told)
    if not wrong and "out" in given:
        _compared(pages, given)
    if wrong:
        raise UserError("\n".join(str(error) for error in wrong).rstrip("."))
    return 0


def _written(path: Path, given: Mapping[str, str]) -> "Material":
    """Writes the page of a run."""
    from rehearsal_torch.files.writing import write_text
    from rehearsal_torch.reporting.page.material import material
    from rehearsal_torch.reporting.page.run_page import FILE, page
    from rehearsal_torch.reporting.run_report import draw

    if not path.is_dir():
        raise UserError(
            "there is no such folder", str(path), "Give the folder of a run, such as runs/auf/FOLDER"
        )
    if (path / "sweep.json").is_file():
        raise UserError("is the folder of a sweep", str(path), f"Give the folders of its jobs: {path}/*/")
    found = material(path, cases=int(given["cases"]), rows=given["rows"] == "true", ended=False)
    if not found.run.decisions:
        raise UserError(
            "holds no decisions yet, so that there is nothing to report", str(path), "Finish the run"
        )
    with RunFolder(path).lock():
        if given["figures"] == "true":
            draw(found.run)
        print(f"Written: {write_text(path / FILE, page(found))}", flush=True)
    return found


def _compared(pages: "Sequence[Material]", given: Mapping[str, str]) -> None:
    """Writes the page that compares runs."""
    from rehearsal_torch.files.writing import write_text
    from rehearsal_torch.reporting.page.several_runs import comparing_page

    text = comparing_page(pages, int(given["cases"]))
    print(f"Written: {write_text(given['out'], text)}", flush=True)


def _free(path: Path) -> None:
    """Refuses to overwrite what this command did not write."""
    from rehearsal_torch.reporting.page.document import MARK

    if path.is_dir():
        raise UserError("is a folder", f"out={path}", "Name a file, such as comparison.html")
    if path.exists() and not begins(path, MARK):
        raise UserError(
            "exists already, and was not written by this command", f"out={path}", "Name another file"
        )


def _told(error: Exception, run: Path) -> UserError | None:
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


def _help() -> str:
    usage = f"Usage: {spoken('report')} RUN [RUN ...] [key=value ...]"
    about = (
        "Writes report.html into run folders: answers, pictures, what would overturn them, assumptions,\n"
        "data, warnings and provenance, in one file that can be handed on. With several runs and out=FILE,\n"
        "also one page that compares them."
    )
    options = Verb("report", "", OPTIONS, lambda _: 0, "report").help().splitlines()[4:]
    return "\n".join([about, "", usage, "", *options])
