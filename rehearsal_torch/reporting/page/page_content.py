"""Content of a run folder for a report page, read with checks.

The files of a run folder may have been edited. Whatever is not checked when it is read is asked for here:
`mapping` and `listed` return empty containers for anything of another form, `finite` returns None, and what
is missing is left out of the page.

Of a decision whose case is a held-out row of the table, and was given by nobody, a page leaves out the
context and the present values: of a finding that states them it has the general sentence (`Finding.general`).
What a decision sets is shown, also where that lies outside the data; so are the ranges of the data card.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from rehearsal_torch.data.codings.decision_texts import card_in_words, recorded_region_in_words
from rehearsal_torch.evaluation.claim_rows import number
from rehearsal_torch.evaluation.method_summaries import MethodSummary
from rehearsal_torch.evaluation.run_record import Decided, Recorded, is_sequence, read
from rehearsal_torch.reporting import alteration_report
from rehearsal_torch.reporting.labels import Wording, worded
from rehearsal_torch.reporting.sequence_report import Row, summary
from rehearsal_torch.run_folder import RunFolder
from rehearsal_torch.spaces.box import setting_text

_CASE_VALUES = ("given", "present")


def without_values(decision: Decided) -> Decided:
    """A copy of a decision without the values of its case."""
    public: dict[str, Any] = {key: value for key, value in decision.items() if key not in _CASE_VALUES}
    if decision.get("findings"):
        public["findings"] = list(map(_general_finding, decision["findings"]))
    if decision.get("reason"):
        public["reason"] = _general_finding(decision["reason"])
    return public


def _general_finding(finding: Mapping[str, Any]) -> dict[str, Any]:
    """A finding whose text has no values of the case."""
    return {"kind": finding["kind"], "text": str(finding.get("general") or finding["text"])}


CASES = 100


@dataclass(frozen=True)
class Material:
    """The content of a run folder, and what the reader asked for.

    Attributes:
        card: The data card, with texts in place of codes; empty if there is none.
        record: The content of ``run.json``; empty if there is none.
        status: The content of ``status.json``; empty if there is none.
        words: Names and units of the numbers of sequence decisions (`wording.worded`).
        cases: The largest number of cases that are shown one by one.
        rows: Whether the recorded rows are shown.
        ended: Whether the run has ended by itself, so that a missing status means nothing.
    """

    run: Recorded
    card: dict[str, Any] = field(default_factory=dict)
    record: dict[str, Any] = field(default_factory=dict)
    status: dict[str, Any] = field(default_factory=dict)
    words: Wording = field(default_factory=Wording)
    cases: int = CASES
    rows: bool = False
    ended: bool = True

    @property
    def trials(self) -> bool:
        """Whether the run holds trials."""
        return self.run.of_trials

    @property
    def alterations(self) -> bool:
        """Whether the run holds rehearsal decisions."""
        return self.run.of_cases

    @property
    def sequences(self) -> bool:
        """Whether the run holds action sequences."""
        return not self.trials and not self.alterations and any(map(is_sequence, self.run.decisions))

    @property
    def withholds(self) -> bool:
        """Whether the values of cases are withheld: held-out rows of the table, and nobody asked for rows."""
        if self.rows or not self.alterations:
            return False
        scored = any("desired_no_action" in mapping(decision.get("score")) for decision in self.run.decisions)
        held_out = self.card.get("kept_aside")
        return scored or (bool(held_out) and held_out == self.card.get("cases"))

    @cached_property
    def sequence_rows(self) -> list[Row]:
        """The summary of decisions other than alterations and trials, whose intervals take a while."""
        return summary(self.run, self.words)

    @cached_property
    def methods(self) -> dict[str, MethodSummary]:
        """The summary of rehearsal decisions by method."""
        return alteration_report.summaries(self.run)

    @property
    def units(self) -> dict[str, str]:
        """Variable to its unit, as far as the data set says so."""
        return {name: str(unit) for name, unit in mapping(self.run.words.get("units_of")).items() if unit}

    @property
    def wanted(self) -> str:
        """The desired region in words; empty where it is not recorded, or too long."""
        return recorded_region_in_words(self.card)

    @property
    def nouns(self) -> tuple[str, str]:
        """The words for one case and for several."""
        return (self.words.episode, self.words.episodes) if self.sequences else ("case", "cases")

    @property
    def decisions(self) -> list[Decided]:
        """All decisions, as far as the page may show them."""
        return list(map(without_values, self.run.decisions)) if self.withholds else self.run.decisions


def material(folder: str | Path, *, cases: int = CASES, rows: bool = False, ended: bool = True) -> Material:
    """Reads a run folder. FileNotFoundError if it is none, PlainFileError if one of its files is damaged."""
    run, files = read(folder), RunFolder(folder)
    card = card_in_words({str(key): value for key, value in files.read_yaml("data.yaml").items()})
    status = {} if ended else files.read_json("status.json")
    return Material(run, card, files.read_json("run.json"), status, worded(run), cases, rows, ended)


def mapping(value: object) -> dict[str, Any]:
    """The value if it is a mapping, with texts as keys; else an empty one."""
    return {str(key): item for key, item in value.items()} if isinstance(value, Mapping) else {}


def listed(value: object) -> list[Any]:
    """The value if it is a list; else an empty one."""
    return list(value) if isinstance(value, list | tuple) else []


def finite(value: object) -> float | None:
    """The value if it is a finite number; else None."""
    if isinstance(value, bool | str):
        return None
    try:
        parsed = number(value)
    except OverflowError:
        return None
    return parsed if math.isfinite(parsed) else None


def shown(value: object) -> str:
    """A value in words: numbers in four significant digits, lists with commas, mappings as name and value."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    if isinstance(value, int):
        return str(value) if abs(value) < 10**15 else f"{float_of(value):.4g}"
    if isinstance(value, float):
        return setting_text(value)
    if isinstance(value, Mapping):
        if any(isinstance(item, Mapping | list | tuple) for item in value.values()):
            return "; ".join(f"{key}: {shown(item)}" for key, item in value.items())
        return ", ".join(f"{key} {shown(item)}" for key, item in value.items()) or "none"
    if isinstance(value, list | tuple):
        return ", ".join(shown(item) for item in value) or "none"
    return str(value)


def float_of(value: int) -> float:
    """A whole number as a float; infinite where it is too large for one."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def named(values: Mapping[str, object], between: str = ", ") -> str:
    """Names with their values, such as ``score 0.3, ratio 0.4``."""
    return between.join(f"{name} {shown(value)}" for name, value in values.items())


def and_list(parts: Sequence[str]) -> str:
    """A list in words: ``age, sex and s5``."""
    return " and ".join([*([", ".join(parts[:-1])] if len(parts) > 1 else []), *parts[-1:]])


def counted(count: int, noun: str, nouns: str = "") -> str:
    """A number with its noun: ``1 case``, ``2 cases``."""
    return f"{count:,} {noun if count == 1 else nouns or f'{noun}s'}"
