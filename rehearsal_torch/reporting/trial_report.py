"""Report of a run of trials: actions and rewards round by round, the recommended action, recovered noise."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rehearsal_torch.evaluation.claim_rows import Row, number, scored_trial, trial_rows
from rehearsal_torch.evaluation.method_summaries import trial_summary
from rehearsal_torch.evaluation.run_record import Decided, Recorded, claim, effort
from rehearsal_torch.files.atomic_write import write_text
from rehearsal_torch.files.csv_rows import as_csv
from rehearsal_torch.reporting.alteration_report import figure
from rehearsal_torch.spaces.box import setting_text

SHOWN = 10
# Quantities and parts of the recovered noise in ``truth.csv``.
MEASURES = (
    ("correlation", "correlation"),
    ("mean", "mean"),
    ("std", "std"),
    ("dependence", "dependence on\nthe inputs (HSIC)"),
    ("distance", "Wasserstein distance\nto the true noise"),
)
PARTS = {"fitted": "trials that the model was fitted to", "held out": "held-out trials"}


def last_rounds(run: Recorded) -> tuple[list[str], list[list[str]]]:
    """Heads and cells of the last rounds: setting, reward, predictions of it and of the setting to keep."""
    rows = rounds(run)
    heads = ["round", "tried", "reward", *(("expected", "best so far") if rows else ())]
    body = []
    for decision, row in list(zip(run.decisions, rows or [{} for _ in run.decisions], strict=True))[-SHOWN:]:
        reward, seconds = decision.get("reward"), decision.get("seconds")
        body.append(
            [
                str(int(decision["index"]) + 1),
                settings(decision.get("alteration") or {}),
                "" if reward is None else figure(reward),
                *((figure(row["expected"]), figure(row["best_expected"])) if row else ()),
                figure(predicted_of_tried(decision)),
                figure(claim(decision)),
                "" if seconds is None else f"{float(seconds):.2f}",
            ]
        )
    return [*heads, "predicted", "of the one to keep", "seconds"], body


def reached(run: Recorded) -> list[str]:
    """The true reward of the recommended action, in a sentence; empty if no world scored the trials."""
    rows = rounds(run)
    if not rows:
        return []
    trials = trial_summary(rows)
    last, start = figure(rows[-1]["recommended_expected"]), figure(trials.start)
    way = f"; {100 * (1 - trials.normalised):.1f}% of the way" if trials.normalised <= 1 else ""
    return [
        f"Its true expected reward: {last} of {figure(trials.optimum)} (best of the start design {start}"
        f"{way}); best tried {figure(rows[-1]['best_expected'])}, average {figure(trials.average.mean)}"
    ]


def written(run: Recorded) -> list[Path]:
    """Writes ``table.csv``, one row per round with all settings."""
    lines: list[dict[str, Any]] = []
    rows: list[Row] = rounds(run) or [{} for _ in run.decisions]
    for decision, row in zip(run.decisions, rows, strict=True):
        cells = {
            "round": int(decision["index"]) + 1,
            "reward": decision.get("reward"),
            "predicted": predicted_of_tried(decision),
            "predicted_recommended": claim(decision),
            "seconds": decision.get("seconds"),
        }
        cells |= {f"set/{name}": value for name, value in (decision.get("alteration") or {}).items()}
        cells |= {f"recommended/{name}": value for name, value in kept(decision).items()}
        lines.append(cells | {key: value for key, value in row.items() if key not in cells})
    return [write_text(run.path / "table.csv", as_csv(lines))]


def kept(decision: Decided) -> Mapping[str, float | str]:
    """The setting recommended after a trial; the setting tried if there is no recommendation."""
    return decision.get("recommendation") or decision.get("alteration") or {}


def predicted_of_tried(decision: Decided) -> float | None:
    """The predicted reward of the setting tried, which need not be the one to keep; None without one."""
    prediction = effort(decision, "predicted_reward")
    if prediction is None and kept(decision) == decision.get("alteration"):
        prediction = claim(decision)
    return None if prediction is None else number(prediction)


def named(run: Recorded, group: str) -> str:
    """The option chosen for a group of the configuration; the group's name if it was not recorded."""
    return run.choices.get(group, group)


def settings(setting: Mapping[str, float | str]) -> str:
    """Names and values of a setting, on one line."""
    return ", ".join(f"{name} {setting_text(value)}" for name, value in setting.items())


def rounds(run: Recorded) -> list[Row]:
    """The rows of the rounds; empty if no world scored the trials."""
    if not all(map(scored_trial, run.decisions)):
        return []
    seed = int(run.config.get("seed", 0))
    return trial_rows(named(run, "dataset"), "", named(run, "decision"), seed, run.decisions)


def recovered_noise(rows: Sequence[Mapping[str, str]]) -> list[list[str]]:
    """Rows of ``truth.csv`` on recovered noise as cells by node and part; empty if a run has none."""
    values = {
        (row["node"], row["part"], row["quantity"]): number(row["value"])
        for row in rows
        if row.get("quantity") in dict(MEASURES)
    }
    return [
        [node, part, *(figure(values.get((node, part, name))) for name, _ in MEASURES)]
        for node, part in dict.fromkeys((node, part) for node, part, _ in values)
    ]


def recovered_in_short(rows: Sequence[Mapping[str, str]]) -> list[str]:
    """The correlation of recovered and true noise, a line for each kind of trials; empty without any."""
    correlations: dict[str, list[str]] = {}
    for row in rows:
        if row.get("quantity") == "correlation":
            correlations.setdefault(row["part"], []).append(f"{row['node']} {number(row['value']):.3f}")
    return [
        f"correlation of recovered and true noise, {PARTS.get(part, part)}: {', '.join(nodes)}"
        for part, nodes in correlations.items()
    ]
