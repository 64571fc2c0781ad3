"""Run folders as read for reports: decisions, metrics, configuration, choices and known truth.

Any of the files may be missing. An incomplete last line, left when a run was killed, is dropped.

The simulated cohort knows two outcomes of a decision: the SOFA score as it is scored, and the score of the
organs alone, without the points that a vasopressor scores because it is given. A decision claims one of them,
or something else, such as a weighted sum of vitals. The return without changes tells which: it is computed
from the observed stay and so equals that of the matching truth exactly. Where no vasopressor was given both
truths begin alike, and the record's returns with and without the points of doses tell them apart.
"""

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rehearsal_torch.data.codings.coding import Coding
from rehearsal_torch.data.codings.decision_texts import line_in_texts, recorded_codings
from rehearsal_torch.data.finding import Finding, findings_of, undecided
from rehearsal_torch.data.task_compatibility import KINDS, Kind
from rehearsal_torch.files.bounded_yaml import PlainFileError, shown
from rehearsal_torch.files.csv_rows import read_rows
from rehearsal_torch.run_folder import SECONDS, RunFolder

# The columns of truth.csv besides quantity and value.
FEATURES, NOISE = ("sequence", "feature", "estimator"), ("node", "part", "true")
# The columns of surrogate.csv.
CURVES, CURVE_NUMBERS = ("panel", "name", "along", "series", "x", "value", "std"), ("x", "value", "std")
# The columns of claims.csv.
CLAIMS = ("case", "along", "series", "x", "point", "lower", "upper", "level")
CLAIM_NUMBERS = ("x", "point", "lower", "upper", "level")
Decided = dict[str, Any]


@dataclass(frozen=True)
class Recorded:
    """The content of a run folder.

    Attributes:
        decisions: One dictionary per decision by index, with measured `seconds`, and texts in place of codes.
        metrics: Name to (step, value) pairs, in the order in which they were written.
        truth, curves, claims: The rows of ``truth.csv``, ``surrogate.csv`` and ``claims.csv``.
        choices: Group of the configuration to the option chosen, such as decision to cme.
        kind: The kind of problem (`Problem.kind`); None if it was not recorded.
        held_out_seen: Whether the checkpoint has seen the held-out rows; None if unknown, false without one.
        codings: Variable to the coding of its texts (`data.codings`).
        parts: Groups of the configuration as a problem of episodes filled them in; empty for other runs.
        words: `Facts.wording` with ``reward`` and ``actions`` of the task; empty if the data set has none.
    """

    path: Path
    decisions: list[Decided] = field(default_factory=list)
    metrics: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    truth: list[dict[str, str]] = field(default_factory=list)
    curves: list[dict[str, str]] = field(default_factory=list)
    choices: dict[str, str] = field(default_factory=dict)
    kind: Kind | None = None
    findings: tuple[Finding, ...] = ()
    held_out_seen: bool | None = False
    words: dict[str, Any] = field(default_factory=dict)
    claims: list[dict[str, str]] = field(default_factory=list)
    codings: Mapping[str, Coding] = field(default_factory=dict)
    parts: dict[str, Any] = field(default_factory=dict)

    @property
    def of_cases(self) -> bool:
        """Whether it holds rehearsal decisions."""
        return bool(self.decisions) and self.kind == "rehearse"

    @property
    def of_trials(self) -> bool:
        """Whether it holds trials."""
        return bool(self.decisions) and self.kind == "optimise"

    @property
    def settled(self) -> dict[str, Any]:
        """The configuration with the parts as they were filled in."""
        return self.config | self.parts

    def groups(self) -> dict[tuple[str, int | None], list[Decided]]:
        """The decisions by (search, k), in ascending order of k, None for no action sequences."""
        groups: dict[tuple[str, int | None], list[Decided]] = defaultdict(list)
        for decided in self.decisions:
            changes = decided["trajectory"]["changes"] if is_sequence(decided) else None
            groups[search_of(decided), changes].append(decided)
        return dict(sorted(groups.items(), key=lambda item: -1 if item[0][1] is None else item[0][1]))


def is_sequence(decided: Decided) -> bool:
    """Whether a decision is an action sequence of an episode."""
    return isinstance(decided.get("trajectory"), Mapping)


def search_of(decided: Decided) -> str:
    """The name of the search, from its trace; "decision" if the trace does not name it."""
    return str(effort(decided, "search") or "decision")


ACTS, NOTHING, REFUSED = "an alteration is recommended", "no action", "refused"


def group_of(decided: Decided) -> str:
    """The group of a decision: `ACTS`, `NOTHING` (is better) or `REFUSED` (the method cannot tell)."""
    if decided.get("alteration") is not None:
        return ACTS
    return REFUSED if undecided(decided) else NOTHING


def effort(decided: Decided, name: str) -> Any:
    """An entry of the search's trace, such as ``expanded``; None if it is missing."""
    trace = decided.get("trace")
    return trace.get(name) if isinstance(trace, Mapping) else None


def claim(decided: Decided, part: str = "point", of: str = "estimate") -> Any:
    """A part (``point``, ``lower``, ``upper``) of the estimate or of another field; None if it is missing."""
    estimate = decided.get(of)
    return estimate.get(part) if isinstance(estimate, Mapping) else None


def before(decided: Decided, part: str = "point") -> Any:
    """A part of the estimate that a decision is compared with: of known present values, else of no action."""
    return claim(decided, part, "unchanged" if isinstance(decided.get("unchanged"), Mapping) else "baseline")


def read(path: str | Path) -> Recorded:
    """Reads a run folder; FileNotFoundError without a file of a run, PlainFileError if one is damaged."""
    path = Path(path)
    names = ("decisions.jsonl", "metrics.csv", "config.yaml")
    if not any((path / name).is_file() for name in names):
        expected = f"expected at least one of {', '.join(names)} in it"
        raise FileNotFoundError(f"{path} is not a run folder: {expected}")
    folder = RunFolder(path)
    metrics: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for step, name, value in folder.metrics():
        metrics[name].append((float(step), value))
    seconds = {int(step): value for step, value in metrics.get(SECONDS, [])}
    decisions = sorted(folder.decisions(), key=lambda decided: decided.get("index", 0))
    timed_decisions = [{"seconds": seconds.get(decided.get("index", -1)), **decided} for decided in decisions]
    truth = read_rows(path / "truth.csv", ("quantity", "value"), ("value", "true"))
    if truth:
        columns = NOISE if "node" in truth[0] else FEATURES
        truth = read_rows(path / "truth.csv", columns, ("value", "true"))
    curves = read_rows(path / "surrogate.csv", CURVES, CURVE_NUMBERS)
    claims = read_rows(path / "claims.csv", CLAIMS, CLAIM_NUMBERS)
    run = folder.read_json("run.json")
    choices = {str(key): str(value) for key, value in run.get("choices", {}).items()}
    kind = _kind(run, path)
    card = folder.read_yaml("data.yaml")
    codings = recorded_codings(card.get("codings"))
    timed_decisions = (
        [line_in_texts(decided, codings) for decided in timed_decisions] if codings else timed_decisions
    )
    config = folder.read_yaml("config.yaml")
    # Older runs with a checkpoint do not record it.
    held_out_seen = run.get("held_out_seen", None if config.get("checkpoint") else False)
    wording = dict(run["words"]) if isinstance(run.get("words"), Mapping) else {}
    if wording:
        wording |= {"reward": run.get("reward"), "actions": run.get("actions")}
    parts = dict(run["parts"]) if isinstance(run.get("parts"), Mapping) else {}
    details = findings_of(card), held_out_seen, wording, claims, codings, parts
    return Recorded(path, timed_decisions, dict(metrics), config, truth, curves, choices, kind, *details)


def _kind(run: Mapping[str, Any], path: Path) -> Kind | None:
    """The kind of a run in run.json; None if it records none."""
    value = run.get("kind")
    kind = next((name for name in KINDS if name == value), None)
    if value and kind is None:
        expected = f"{', '.join(KINDS[:-1])} or {KINDS[-1]}"
        raise PlainFileError(
            f"{path / 'run.json'}: kind: expected {expected}; got {shown(str(value))}: restore the file from "
            "a copy, or start again in another folder"
        )
    return kind


SCORES = {"true": "SOFA", "true_organs": "organ SOFA"}
# The related return of a record (objectives.task_reward) for each truth.
_RELATED = {"true_organs": "without doses", "true": "with doses"}


def counterpart(trajectory: Mapping[str, Any], score: Mapping[str, object]) -> str | None:
    """The key of `SCORES` whose truth has the ``observed`` (and ``related``) returns of a claim, or None."""
    matching = [name for name in SCORES if _equal(trajectory.get("observed"), score.get(f"{name}_observed"))]
    related = trajectory.get("related") or {}
    for name, returns in _RELATED.items():
        ends = [(trajectory.get(end), related.get(returns, {}).get(end)) for end in ("observed", "value")]
        if name in matching and all(_equal(*pair) for pair in ends):
            return name
    return matching[0] if matching else None


def _equal(first: object, second: object) -> bool:
    return (
        isinstance(first, int | float)
        and isinstance(second, int | float)
        and math.isclose(first, second, rel_tol=1e-6, abs_tol=1e-6)
    )
