"""README.md and the figures of the study of structural rehearsal models, from its rows."""

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

from rehearsal_torch.evaluation.online_rows import Row, online_typed
from rehearsal_torch.reporting.style import drawing, save
from rehearsal_torch.run_folder import RunFolder
from rehearsal_torch.studies.committed import caution
from rehearsal_torch.studies.online import results as online_results
from rehearsal_torch.studies.online.reproduction import AGENTS, LEARNING, agents_in, record_in
from rehearsal_torch.studies.record import Record
from rehearsal_torch.studies.results_folder import RUN, minutes, origin
from rehearsal_torch.studies.study_files import study, texts


def documents(out: RunFolder) -> None:
    """Writes README.md and figures/.

    Args:
        out: The study's folder.
    """
    record, usual = record_in(out.path), int(study("online").facts["rounds"])
    rows, played = online_typed(record.rows(LEARNING)), _played(out.path, usual)
    longer = {rounds: _played(out.path, rounds) for rounds in _longer(out.path)}
    text = [
        f"# {study('online').title}",
        "",
        *caution(record.lines.values(), "repeats"),
        _made(out.read_json(RUN), record),
        "",
        texts("online")["methods"],
    ]
    with drawing():
        sections = [online_results.table1(rows, played, longer), online_results.fig4(rows)]
        sections += [
            part(rows)
            for part in (online_results.policies, online_results.counterparts, online_results.changing)
        ]
        goals = online_results.goals(rows)
        text += ["", *goals] if goals else []
        for lines, figures in sections:
            text += ["", *lines] if lines else []
            for name, figure in figures.items():
                save(figure, out.path / "figures", name)
                text += ["", f"![{name}](figures/{name}.svg)"]
    out.write("README.md", "\n".join([*text, "", *_cut(record)]) + "\n")


def _played(folder: Path, rounds: int) -> list[Row]:
    return online_typed(agents_in(folder, rounds).rows(AGENTS))


def _longer(folder: Path) -> list[int]:
    found = (re.fullmatch(r"rl_(\d+)\.csv", path.name) for path in folder.glob("rl_*.csv"))
    return sorted(int(match[1]) for match in found if match)


def _made(run: Mapping[str, Any], record: Record) -> str:
    lines = list(record.lines.values())
    where = f"{origin(run, lines, 'repeat')}; {minutes(lines)}."
    rounds, scenarios = (run.get(key, "-") for key in ("rounds", "scenarios"))
    return texts("online")["made"].format(origin=where, rounds=rounds, scenarios=scenarios)


def _cut(record: Record) -> list[str]:
    """How many repeats each part has, and so what was cut."""
    counts = Counter((key[0], key[1], key[2]) for key in record.lines)
    if not counts:
        return ["No round was played yet."]
    text = _speed(record)
    fewer = [
        f"{world} {method}{f' tau={tau}' if tau else ''}: {count}"
        for (world, method, tau), count in counts.items()
        if count < study("online").facts["repeats"]
    ]
    if not fewer:
        return [*text, "", texts("online")["complete"]]
    return [
        *text,
        "",
        "## What was cut",
        "",
        texts("online")["cut"].format(fewer="; ".join(fewer)),
    ]


def _speed(record: Record) -> list[str]:
    """What 20 repeats take on two cores, from the seconds of those that were done."""
    found: dict[str, list[float]] = {}
    for (world, method, _, _), line in record.lines.items():
        if method == "qwz23":
            found.setdefault(world, []).append(float(line["seconds"]))
    told = "; ".join(
        f"{world}: {median(seconds):.0f} s a repeat, {median(seconds) / 6:.1f} minutes"
        for world, seconds in found.items()
    )
    return [
        "## Speed",
        "",
        texts("online")["speed"].format(told=told or "none was run"),
    ]
