"""README.md and the figures of the study of avoiding undesired futures, from its record."""

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

from rehearsal_torch.cli.errors import UserError
from rehearsal_torch.cli.spelling import spoken
from rehearsal_torch.reporting.cross_table import as_markdown
from rehearsal_torch.reporting.style import drawing, save
from rehearsal_torch.run_folder import RunFolder
from rehearsal_torch.studies.auf import results as auf_results
from rehearsal_torch.studies.auf.illustrations import illustrations
from rehearsal_torch.studies.committed import caution
from rehearsal_torch.studies.record import StudyRecord

SECTIONS = (
    auf_results.table1,
    auf_results.sensitivity,
    auf_results.learning_curve,
    auf_results.table2,
    auf_results.table3,
    auf_results.table4,
)
GENERATOR = ("marginals", "correlations")


def documents(out: RunFolder, record: StudyRecord, nhanes: Path | None) -> None:
    """Writes README.md and figures/.

    Args:
        out: The study's folder.
        record: Its rows.
        nhanes: What preparing NHANES wrote, whose validation figures are taken over; None keeps those that
            are there.

    Raises:
        UserError: if the folder holds no such figures.
    """
    text = [
        "# Avoiding undesired futures: the paper's tables",
        "",
        *caution(record.jobs.values()),
        _method(out.read_json("run.json"), record),
    ]
    folder = out.path / "figures"
    with drawing():
        for section in SECTIONS:
            lines, figures = section(record)
            text += ["", *lines] if lines else []
            for name, figure in figures.items():
                save(figure, folder, name)
                text += ["", f"![{name.replace('_', ' ')}](figures/{name}.svg)"]
        lines, figures = illustrations()
        text += ["", *lines]
        for name, figure in figures.items():
            save(figure, folder, name)
    text += ["", *_generator(folder, nhanes)]
    out.write("README.md", "\n".join(text) + "\n")


def _method(run: dict[str, Any], record: StudyRecord) -> str:
    commits = Counter(
        line["commit"][:12] + ("+changes" if line["commit"].endswith("+changes") else "")
        for line in record.jobs.values()
    )
    told = ", ".join(f"{name or 'unknown'} ({count} jobs)" for name, count in commits.items())
    commands = ", ".join(f"`{command}`" for command in run.get("commands", []))
    versions = ", ".join(f"{name} {version}" for name, version in run.get("versions", {}).items() if version)
    return (
        f"Made by {commands}; commits: {told or 'none'}; {versions}. A job is what `scripts/decide.py "
        "+experiment=auf dataset=WORLD decision=METHOD "
        "seed=SEED` does; jobs.csv lists them with the seconds of their fit. N = 1,000 rows unless said "
        "otherwise. All methods see the same rows and "
        "contexts of a seed, and each has one configuration for all worlds. Probabilities are the worlds' "
        "own (exact, by quadrature, or from at least "
        "10,000 draws with common random numbers). `oracle` is the best that any alteration allowed can "
        "reach, or doing nothing where that is "
        "better; `no action` is what happens when nothing is altered. A decision that is declined counts "
        "with the probability of doing nothing."
    )


def _generator(folder: Path, nhanes: Path | None) -> list[str]:
    """Fig. 10: how the NHANES generator compares with the participants; figures need the participants' data,
    the numbers do not.
    """
    from rehearsal_torch.problems.nhanes.dataset import Nhanes

    card = dict(Nhanes().card())["generator"]
    said = card["validation"]
    if nhanes is not None:
        missing = [name for name in GENERATOR if not (nhanes / f"{name}.svg").is_file()]
        if missing:
            raise UserError(
                f"expected {', '.join(f'{name}.svg' for name in missing)} there",
                f"--nhanes {nhanes}",
                f"Run {spoken('prepare')} nhanes first",
            )
        folder.mkdir(parents=True, exist_ok=True)
        for name in GENERATOR:
            for ending in ("png", "svg"):
                shutil.copyfile(nhanes / f"{name}.{ending}", folder / f"nhanes_{name}.{ending}")
    text = [
        "## The NHANES generator (Fig. 10)",
        "",
        f"{card['participants']} participants; mean absolute error between correlation matrices:",
        "",
    ]
    body = [
        [name, f"{one['correlation_mae']:.4f}", f"{one['desired']:.3f}"]
        for name, one in said["readings"].items()
    ]
    body += [
        ["paper", f"{said['correlation_mae_paper']:.4f}", "-"],
        ["participants", "-", f"{said['desired_real']:.3f}"],
    ]
    text += as_markdown(["generator", "correlation error", "share with desired outcomes"], body)
    shown = [name for name in GENERATOR if (folder / f"nhanes_{name}.svg").is_file()]
    for name in shown:
        text += ["", f"![NHANES {name}](figures/nhanes_{name}.svg)"]
    return (
        text
        if shown
        else [
            *text,
            "",
            f"The figures need the participants' data: `{spoken('prepare')} nhanes`, then `--nhanes FOLDER`.",
        ]
    )
