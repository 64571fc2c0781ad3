"""README.md and the figures of the study of structural rehearsal models, from its rows."""

import re
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any

from rehearsal_torch.evaluation.online_rows import online_typed
from rehearsal_torch.reporting.style import drawing, save
from rehearsal_torch.run_folder import RunFolder
from rehearsal_torch.studies.command import origin
from rehearsal_torch.studies.committed import caution
from rehearsal_torch.studies.qwz23 import results as qwz23_results
from rehearsal_torch.studies.qwz23.agents_study import played_lines, rl_file
from rehearsal_torch.studies.rounds_record import RoundsRecord

METHODS = (
    "`qwz23` takes the most informative alteration among those that the posterior holds probable enough; "
    "where none is, the most probable one, and "
    "among alterations whose information is within .1 nats of the best the most probable. `qwz23_exact` is "
    "the same with indifference 0. "
    "`qwz23_published` has the paper's settings: ridge regression, UCB, indifference 0, and the constraint "
    "dropped where nothing reaches tau. "
    "`qwz23_refusing` alters nothing where nothing reaches tau. `qwz23_success` takes the most probable "
    "alteration throughout. `causal` is `qwz23` "
    "without bi-directional edges; `associative` is `qwz23` on a regression of the outcome on all that is "
    "seen and may be set. `forgetting` is "
    "`qwz23_success` with a row counting for .9 of the row after it. Agents of reinforcement learning play "
    "the same rounds; those named `_joint` alter all "
    "variables at once, so that their best possible is another."
)


def documents(out: RunFolder) -> None:
    """Writes README.md and figures/.

    Args:
        out: The study's folder.
    """
    record = RoundsRecord(out.path)
    rows, played = record.rows(), online_typed(played_lines(rl_file(out.path)))
    longer = {rounds: online_typed(played_lines(path)) for rounds, path in _longer(out.path)}
    text = [
        "# Structural rehearsal models: the paper's rounds",
        "",
        *caution(record.jobs.values(), "repeats"),
        _method(out.read_json("run.json"), record),
        "",
        METHODS,
    ]
    with drawing():
        sections = [qwz23_results.table1(rows, played, longer), qwz23_results.fig4(rows)]
        sections += [
            part(rows)
            for part in (qwz23_results.policies, qwz23_results.counterparts, qwz23_results.changing)
        ]
        goals = qwz23_results.goals(rows)
        text += ["", *goals] if goals else []
        for lines, figures in sections:
            text += ["", *lines] if lines else []
            for name, figure in figures.items():
                save(figure, out.path / "figures", name)
                text += ["", f"![{name}](figures/{name}.svg)"]
    out.write("README.md", "\n".join([*text, "", *_cut(record)]) + "\n")


def _longer(folder: Path) -> list[tuple[int, Path]]:
    found = [(re.fullmatch(r"rl_(\d+)\.csv", path.name), path) for path in folder.glob("rl_*.csv")]
    return sorted((int(match[1]), path) for match, path in found if match)


def _method(run: dict[str, Any], record: RoundsRecord) -> str:
    return (
        f"{origin(run, record.jobs.values())} A repeat is what `scripts/decide.py "
        "+experiment=ride_hailing` or `+experiment=bermuda_online` does with `seed=REPEAT`: "
        f"{run.get('rounds', '-')} rounds from 10 observations on, one "
        f"variable altered in each, learning from each; here with {run.get('scenarios', '-')} + "
        f"{run.get('scenarios', '-')} scenarios. Probabilities are the "
        "worlds' own, exact; ± is the standard deviation over repeats; `best possible` is the most that one "
        "variable can reach. Repeats with the same "
        "number share observations, contexts and noise. `ride_hailing` has the clique's noise in the "
        "equations; `ride_hailing_released` adds it "
        "afterwards, as the released code does. rounds.csv has a row a round, jobs.csv a line a repeat."
    )


def _cut(record: RoundsRecord) -> list[str]:
    """How many repeats each part has, and so what was cut."""
    counts = Counter((key[0], key[1], key[2]) for key in record.jobs)
    if not counts:
        return ["No round was played yet."]
    text = _speed(record)
    fewer = [
        f"{world} {method}{f' tau={tau}' if tau else ''}: {count}"
        for (world, method, tau), count in counts.items()
        if count < 20
    ]
    if not fewer:
        return [*text, "", "Every part has the paper's 20 repeats or more."]
    return [
        *text,
        "",
        "## What was cut",
        "",
        "The paper has 20 repeats of everything. Fewer here: " + "; ".join(fewer) + ".",
    ]


def _speed(record: RoundsRecord) -> list[str]:
    """What 20 repeats take on two cores, from the seconds of those that were done."""
    found: dict[str, list[float]] = {}
    for (world, method, _, _), line in record.jobs.items():
        if method == "qwz23":
            found.setdefault(world, []).append(float(line["seconds"]))
    told = "; ".join(
        f"{world}: {median(seconds):.0f} s a repeat, {median(seconds) / 6:.1f} minutes"
        for world, seconds in found.items()
    )
    return [
        "## Speed",
        "",
        f"Processor seconds of `qwz23`, and what 20 repeats take on two cores: {told or 'none was run'}.",
    ]
