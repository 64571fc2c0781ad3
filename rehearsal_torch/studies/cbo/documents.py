"""README.md and the figures of the study of causal Bayesian optimisation, from its rows."""

from collections import Counter

from rehearsal_torch.evaluation.trial_rows import Row, trial_typed
from rehearsal_torch.reporting.style import drawing, save
from rehearsal_torch.reporting.trial_table import problem_of
from rehearsal_torch.run_folder import RunFolder
from rehearsal_torch.studies.cbo import results as cbo_results
from rehearsal_torch.studies.cbo.reproduction import record_in
from rehearsal_torch.studies.record import Record
from rehearsal_torch.studies.results_folder import RUN, minutes, origin
from rehearsal_torch.studies.study_files import study, texts

STUDY = study("cbo")
# The compared methods as such, without the variants of the ablation.
METHODS = tuple(name for name in STUDY.methods if ", " not in name)
SETTINGS, MAIN = STUDY.worlds, STUDY.groups["main"]
COMPARED, COMPONENTS, COUNTED = (STUDY.groups[name] for name in ("compared", "mixtures", "counted"))
ABLATIONS, KERNELS, CONTENDERS = (STUDY.groups[name] for name in ("ablations", "kernels", "contenders"))
SEEDS, FRESH_SEEDS = STUDY.stages["main"].seeds, STUDY.stages["choice"].seeds
SHARE, MANY = float(STUDY.facts["share"]), tuple(STUDY.facts["many_seeds"])
GOALS = tuple(STUDY.facts["goals"])


def documents(out: RunFolder) -> None:
    """Writes README.md and figures/.

    Args:
        out: The study's folder.
    """
    record = record_in(out.path)
    rows: list[Row] = []
    fresh: list[Row] = []
    for row in trial_typed(record.rows("main")):
        (fresh if int(row["seed"]) in FRESH_SEEDS else rows).append(row)
    compared = [row for row in rows if row["method"] in METHODS]
    main = [row for row in compared if problem_of(row) in MAIN]
    text = [f"# {STUDY.title}", "", texts("cbo")["methods"], "", texts("cbo")["made"]]
    with drawing():
        sections = [
            cbo_results.whole(_ordered(main), "Every method on the main setting of each problem", "main")
        ]
        sections.append((cbo_results.beaten(_ordered(main)), {}))
        more = [row for row in main if problem_of(row) in MANY]
        sections.append((cbo_results.medians(_ordered(more), "Dropwave: medians over seeds"), {}))
        sections.append((cbo_results.tables23(_ordered(main)), {}))
        for figure in dict.fromkeys(one.figure for one in SETTINGS.values() if one.figure):
            some = [row for row in compared if SETTINGS[problem_of(row)].figure == figure]
            if any(problem_of(row) not in MAIN for row in some):
                sections.append(
                    cbo_results.whole(
                        _ordered(some), f"{figure} of the paper", figure.lower().replace(". ", "")
                    )
                )
        others = [row for row in compared if problem_of(row) not in MAIN]
        sections.append(
            (cbo_results.across(_ordered(others), "The settings beside the main ones, together"), {})
        )
        counted = [row for row in rows if problem_of(row) in COMPONENTS]
        sections.append(
            (
                cbo_results.changed(
                    counted, COUNTED, "Fig. 14: numbers of mixture components", texts("cbo")["components"]
                ),
                {},
            )
        )
        ablated = [row for row in rows if problem_of(row) in MAIN]
        told = texts("cbo")["kernels"]
        sections.append((cbo_results.changed(ablated, KERNELS, "Kernels", told), {}))
        told = texts("cbo")["ablation"]
        sections.append((cbo_results.changed(ablated, (cbo_results.OURS, *ABLATIONS), "Ablation", told), {}))
        for head, some in {"on fresh seeds": fresh, "on all seeds": [*ablated, *fresh]}.items():
            told = texts("cbo")["contenders"].format(which=texts("cbo")[head.replace(" ", "_")])
            contending = [row for row in some if row["method"] in CONTENDERS]
            sections.append(
                (
                    cbo_results.changed(
                        some, _as_often(some), f"Which configuration is the default, {head}", told
                    ),
                    {},
                )
            )
            sections.append(
                (cbo_results.across(contending, f"The default beside other configurations, {head}"), {})
            )
        often = _as_often([*ablated, *fresh])
        alone = [row for row in ablated if row["method"] in often and problem_of(row) in GOALS]
        sections.append(
            (
                cbo_results.medians(alone, "Configurations run about as often as the default, by themselves"),
                {},
            )
        )
        if compared:
            sections.append((cbo_results.seconds(_ordered(compared)), {}))
        for lines, figures in sections:
            text += ["", *lines] if lines else []
            for name, figure_ in figures.items():
                save(figure_, out.path / "figures", name)
                text += ["", f"![{name}](figures/{name}.svg)"]
    lines_ = list(record.lines.values())
    where = f"{origin(out.read_json(RUN), lines_, 'repeat')}; {minutes(lines_)}."
    made = ["## Where the rows come from", "", where]
    out.write("README.md", "\n".join([*text, "", *_cut(record), "", *made]) + "\n")


def _ordered(rows: list[Row]) -> list[Row]:
    """Rows in the study's order of settings and methods."""
    settings, methods = list(SETTINGS), list(METHODS)
    return sorted(
        rows,
        key=lambda row: (
            settings.index(problem_of(row)),
            methods.index(str(row["method"])),
            row["seed"],
            row["round"],
        ),
    )


def _as_often(rows: list[Row]) -> list[str]:
    """The contenders that were run on every problem that the default has, with most of its seeds."""
    repeats = {
        method: {(problem_of(row), row["seed"]) for row in rows if row["method"] == method}
        for method in CONTENDERS
    }
    default = repeats[cbo_results.OURS]
    problems = {problem for problem, _ in default}
    return [
        method
        for method, each in repeats.items()
        if problems <= {problem for problem, _ in each} and len(each & default) >= SHARE * len(default)
    ]


def _cut(record: Record) -> list[str]:
    """What the whole study has and this record has not."""
    counts = Counter((" ".join(key[:2]), key[2]) for key in record.lines if int(key[3]) not in FRESH_SEEDS)
    fewer, missing = [], []
    for name in SETTINGS:
        line = {method: counts.get((name, method), 0) for method in COMPARED}
        short = [f"{method} {count}" for method, count in line.items() if count < len(SEEDS)]
        if not any(line.values()):
            missing.append(name)
        elif short:
            alike = len(set(line.values())) == 1
            told = f"every method {min(line.values())}" if alike else ", ".join(short)
            fewer.append(f"- {name}: {told}")
    text = ["## What was cut", ""]
    text += [f"Of {len(SEEDS)} seeds there are fewer here:", "", *fewer] if fewer else []
    text += [*([""] if fewer else []), f"Not run: {'; '.join(missing)}."] if missing else []
    return text if len(text) > 2 else [texts("cbo")["nothing_cut"]]
