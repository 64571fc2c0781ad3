"""The NHANES generator: ``python -m reproduction.nhanes source=FOLDER out=FOLDER``.

Merges the CDC's modules of NHANES to complete cases, fits the generator that ``dataset=nhanes`` draws from,
and compares it with the participants. It writes attrition.csv, complete_cases.csv (data of participants, not
to be passed on), generator/ (without any participant's row), and the figures marginals and correlations.
``download=true`` fetches the modules that the folder lacks (from ``site=``), ``checksums=false`` accepts
others than the published ones.

Source: Du et al. (2026), App. E.4 and Fig. 10.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from rehearsal_torch.cli.errors import check_output, exit_code
from rehearsal_torch.files.atomic_write import write_text
from rehearsal_torch.files.lock import locked
from rehearsal_torch.problems.nhanes.nhanes_generator import DESIRED, VARIABLES, Generator
from rehearsal_torch.reporting.figure_style import drawing, save
from rehearsal_torch.user_error import UserError, as_user_error
from reproduction.nhanes.figures import correlations, marginals
from reproduction.nhanes.fitting import fit_generator, save_generator, settings, validated
from reproduction.nhanes.modules import CYCLES, SITE, fetch, merged

_FIGURES = tuple(f"{name}.{kind}" for name in ("marginals", "correlations") for kind in ("png", "svg"))
_WRITTEN = ("attrition.csv", "complete_cases.csv", "generator", *_FIGURES)


def main(typed: Sequence[str] | None = None) -> int:
    """The command; returns its exit code: 0, 2 for an error in an argument, 130 interrupted."""
    words = list(sys.argv[1:] if typed is None else typed)
    return exit_code(lambda: _prepared(words), "Interrupted; run the same command again.")


def _prepared(typed: Sequence[str]) -> int:
    known: dict[str, Any] = {"source": None, "out": None, "download": False, "checksums": True, "site": SITE}
    given = OmegaConf.to_container(OmegaConf.from_cli(list(typed)))
    assert isinstance(given, dict)
    options = {**known, **{str(key): value for key, value in given.items()}}
    if set(options) != set(known) or None in options.values():
        raise UserError(f"expected source= and out=, and of {', '.join(known)} alone", " ".join(typed))
    source, out = Path(options["source"]), Path(options["out"])
    check_output(out, _WRITTEN, "attrition.csv", "required,")
    if options["download"]:
        try:
            fetch(source, options["site"])
        except OSError as error:
            raise UserError(f"{options['site']} cannot be reached ({error})", "download=true") from error
    with as_user_error(f"source={source}"):
        cohort = merged(source)
    print(cohort.attrition.to_string(index=False), flush=True)
    if cohort.unlike and options["checksums"]:
        text = f"{len(cohort.unlike)} modules differ from the expected versions ({', '.join(cohort.unlike)})"
        raise UserError(text, f"source={source}", "Fetch them again, or accept them with checksums=false")
    with as_user_error(f"out={out}"), locked(out):
        write_text(out / "attrition.csv", cohort.attrition.to_csv(index=False, lineterminator="\n"))
        write_text(out / "complete_cases.csv", cohort.cases.to_csv(index=False, lineterminator="\n"))
        fitted = fit_generator(cohort.cases, print)
        checked = validated(fitted, cohort.cases)
        years = list(CYCLES.values())
        card = {
            "source": "U.S. National Center for Health Statistics, NHANES "
            f"{years[0][:4]}-{years[-1][5:]}, public-use files",
            "participants": len(cohort.cases),
            "modules": f"unlike: {', '.join(cohort.unlike)}" if cohort.unlike else "as published",
            **settings(),
            **fitted.card,
            "validation": checked.summary,
        }
        generator = Generator(fitted.roots, fitted.chain, fitted.equations, fitted.ranks, card)
        save_generator(generator, out / "generator")
        with drawing():
            bounds = {name: pair[1] for name, pair in DESIRED.items()}
            save(marginals(VARIABLES, checked.real, checked.generated, bounds), out, "marginals")
            save(correlations(VARIABLES, *checked.correlations), out, "correlations")
    for name, reading in checked.summary["readings"].items():
        print(f"  {name}: correlation MAE {reading['correlation_mae']:.4f}, desired {reading['desired']:.4f}")
    print(f"  participants: desired {checked.summary['desired_real']:.4f}")
    print(f"Use the generator with dataset=nhanes dataset.generator={out / 'generator'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
