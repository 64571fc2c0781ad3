"""README.md and the figures of the study of avoiding undesired futures, from its record."""

import shutil
from pathlib import Path

from rehearsal_torch.cli.errors import UserError
from rehearsal_torch.cli.spelling import spoken
from rehearsal_torch.reporting.cross_table import as_markdown
from rehearsal_torch.reporting.style import drawing, save
from rehearsal_torch.run_folder import RunFolder
from rehearsal_torch.studies.auf import results as auf_results
from rehearsal_torch.studies.auf.illustrations import illustrations
from rehearsal_torch.studies.committed import caution
from rehearsal_torch.studies.record import Record
from rehearsal_torch.studies.results_folder import RUN, origin
from rehearsal_torch.studies.study_files import study, texts

SECTIONS = (
    auf_results.table1,
    auf_results.sensitivity,
    auf_results.learning_curve,
    auf_results.table2,
    auf_results.table3,
    auf_results.table4,
)
GENERATOR = ("marginals", "correlations")


def documents(out: RunFolder, record: Record, nhanes: Path | None) -> None:
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
        f"# {study('auf').title}",
        "",
        *caution(record.lines.values()),
        texts("auf")["made"].format(origin=origin(out.read_json(RUN), record.lines.values(), "job")),
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
                f"nhanes={nhanes}",
                f"Run {spoken('prepare')} nhanes first",
            )
        folder.mkdir(parents=True, exist_ok=True)
        for name in GENERATOR:
            for ending in ("png", "svg"):
                shutil.copyfile(nhanes / f"{name}.{ending}", folder / f"nhanes_{name}.{ending}")
    text = [
        "## The NHANES generator (Fig. 10)",
        "",
        texts("auf")["generator"].format(participants=card["participants"]),
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
            texts("auf")["no_figures"].format(prepare=spoken("prepare")),
        ]
    )
