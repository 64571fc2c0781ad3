"""Preparing NHANES: modules to complete cases, and complete cases to a generator that may be shipped.

Written into the folder `out`: attrition.csv, complete_cases.csv (participants: yours to keep, not to pass on),
generator/ (no participant's row), and the figures marginals and correlations.

Source: Du et al. (2026), App. E.4.
"""

import time
from collections.abc import Mapping
from pathlib import Path

from rehearsal_torch.commands.output import check_output
from rehearsal_torch.commands.user_error import UserError, told
from rehearsal_torch.files.lock import locked

_EXPECTED = 7465
_FIGURES = tuple(f"{name}.{kind}" for name in ("marginals", "correlations") for kind in ("png", "svg"))
_WRITTEN = ("attrition.csv", "complete_cases.csv", "generator", *_FIGURES)


def prepare_nhanes(options: Mapping[str, str]) -> int:
    """Merges, fits, validates and saves.

    Args:
        options: `source` and `out`, folders; `download` and `checksums`, true or false; `site`, where modules are fetched from.

    Returns:
        The exit code, 0.

    Raises:
        UserError: if something is missing, unreadable or cannot be written.
    """
    source, out = Path(options["source"]), Path(options["out"])
    check_output(out, _WRITTEN, "attrition.csv", "required,")
    began = time.monotonic()

    def say(text: str) -> None:
        print(f"[{time.monotonic() - began:5.0f} s] {text}", flush=True)

    from rehearsal_torch.datasets.nhanes_download import fetch
    from rehearsal_torch.datasets.nhanes_modules import CYCLES, merged

    if options["download"] == "true":
        with told("download=true"):
            fetched = fetch(source, options["site"], say)
        say(f"{len(fetched)} modules fetched into {source}")
    with told(f"source={source}"):
        cohort = merged(source)
    print(cohort.attrition.to_string(index=False), flush=True)
    if cohort.unlike:
        text = f"{len(cohort.unlike)} modules differ from those this was written for ({', '.join(cohort.unlike)})"
        if options["checksums"] == "true":
            raise UserError(text, f"source={source}", "Fetch them again, or accept them with checksums=false")
        say(f"{text}; accepted")
    elif len(cohort.cases) != _EXPECTED:
        raise AssertionError(f"the published modules gave {len(cohort.cases)} complete cases instead of {_EXPECTED}")
    # What takes long to import is imported once the data are known to be there.
    from rehearsal_torch.datasets.nhanes_fit import fit_generator, settings
    from rehearsal_torch.datasets.nhanes_generator import Generator
    from rehearsal_torch.datasets.nhanes_validation import validated
    from rehearsal_torch.datasets.nhanes_variables import DESIRED, VARIABLES
    from rehearsal_torch.reporting.drawing import drawing, save
    from rehearsal_torch.reporting.generator_validation import correlations, marginals

    with told(f"out={out}"), locked(out):
        cohort.attrition.to_csv(out / "attrition.csv", index=False)
        cohort.cases.to_csv(out / "complete_cases.csv", index=False)
        fitted = fit_generator(cohort.cases, lambda text: say(f"fitting {text}"))
        checked = validated(fitted, cohort.cases)
        counts = {"participants": len(cohort.cases), "modules": "as published" if not cohort.unlike else f"unlike: {', '.join(cohort.unlike)}"}
        source_text = f"U.S. National Center for Health Statistics, NHANES {next(iter(CYCLES.values()))[:4]}-{list(CYCLES.values())[-1][5:]}, public-use files"
        card = {"source": source_text, **counts, **settings(), **fitted.card, "validation": checked.summary}
        Generator(fitted.roots, fitted.chain, fitted.equations, fitted.ranks, card).save(out / "generator")
        Generator.load(out / "generator")
        with drawing():
            bounds = {name: pair[1] for name, pair in DESIRED.items()}
            save(marginals(VARIABLES, checked.real, checked.generated, bounds), out, "marginals")
            save(correlations(VARIABLES, *checked.correlations), out, "correlations")
    summary = checked.summary
    for name, reading in summary["readings"].items():
        print(f"  {name}: correlation MAE {reading['correlation_mae']:.4f} (paper {summary['correlation_mae_paper']}), desired {reading['desired']:.4f}")
    print(f"  participants: desired {summary['desired_real']:.4f}")
    print(f"{len(cohort.cases)} complete cases; generator and figures in {out}. Use it with dataset=nhanes dataset.generator={out / 'generator'}")
    return 0
