"""What a page is made of: the content of a run folder, and nothing else.

Everything comes from the files that the run wrote. They may have been edited, so that whatever is not checked
when it is read is asked for here: `mapping` and `listed` return empty containers for anything of another
form, `finite` returns None, and what is missing is then left out of the page.

Of a decision whose case is a held-out row of the table, and was given by nobody, a page leaves out what was
known of the case and its present values: of a finding that states them it has the general sentence
(`Finding.general`). What a decision sets is shown, also where that lies outside the data; so are ranges of
the data, which the data card has.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from rehearsal_torch.data.codings.decision_texts import card_in_words, wanted_of
from rehearsal_torch.evaluation.claim_rows import number
from rehearsal_torch.evaluation.method_summaries import MethodSummary
from rehearsal_torch.evaluation.run_record import Decided, Recorded, is_sequence, read
from rehearsal_torch.reporting import alteration_report, trial_report
from rehearsal_torch.reporting.labels import Wording, worded
from rehearsal_torch.reporting.sequence_report import Row, summary
from rehearsal_torch.run_folder import RunFolder
from rehearsal_torch.spaces.box import setting_text

_KNOWN = ("given", "present")


def without_values(decision: Decided) -> Decided:
    """A decision without the values of its case; the record itself stays as it is."""
    kept: dict[str, Any] = {key: value for key, value in decision.items() if key not in _KNOWN}
    if decision.get("findings"):
        kept["findings"] = list(map(_general, decision["findings"]))
    if decision.get("reason"):
        kept["reason"] = _general(decision["reason"])
    return kept


def _general(finding: Mapping[str, Any]) -> dict[str, Any]:
    """A finding without the values of a case: its numbers may be among them."""
    return {"kind": finding["kind"], "text": str(finding.get("general") or finding["text"])}


CASES = 20


@dataclass(frozen=True)
class Material:
    """The content of a run folder, and what the reader asked for.

    Attributes:
        card: The data card, with texts in place of codes; empty if there is none, as are
        record: the content of ``run.json``, and
        status: that of ``status.json``.
        words: Names and units of the numbers of sequence decisions, as in the terminal (`wording.worded`).
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
        return trial_report.concerns(self.run)

    @property
    def alterations(self) -> bool:
        """Whether the run holds rehearsal decisions."""
        return alteration_report.concerns(self.run)

    @property
    def sequences(self) -> bool:
        """Whether the run holds action sequences."""
        return not self.trials and not self.alterations and any(map(is_sequence, self.run.decisions))

    @property
    def withholds(self) -> bool:
        """Whether what is known of the cases is left out: they are rows of the table that were held out, not
        cases that somebody gave, and nobody asked for rows.
        """
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
        """Variable to its unit, where the data set says so."""
        return {name: str(unit) for name, unit in mapping(self.run.words.get("units_of")).items() if unit}

    @property
    def wanted(self) -> str:
        """The desired region of alterations in words; empty where it is not recorded, or too long."""
        return wanted_of(self.card)

    @property
    def nouns(self) -> tuple[str, str]:
        """What one case is called, and what several are."""
        return (self.words.episode, self.words.episodes) if self.sequences else ("case", "cases")

    @property
    def decisions(self) -> list[Decided]:
        """All decisions as the page may tell them."""
        return list(map(without_values, self.run.decisions)) if self.withholds else self.run.decisions

    @property
    def shown(self) -> list[Decided]:
        """The cases that are shown one by one: the first ones; of trials the last one alone."""
        return self.decisions[-1:] if self.trials else self.decisions[: self.cases]


def material(folder: str | Path, *, cases: int = CASES, rows: bool = False, ended: bool = True) -> Material:
    """Reads a run folder.

    Raises:
        FileNotFoundError: if the folder is not a run folder.
        PlainFileError: if one of its files is damaged.
    """
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
    """Parts as a list in words: ``age, sex and s5``."""
    return " and ".join([*([", ".join(parts[:-1])] if len(parts) > 1 else []), *parts[-1:]])


def counted(count: int, noun: str, nouns: str = "") -> str:
    """A number with its noun: ``1 case``, ``2 cases``."""
    return f"{count:,} {noun if count == 1 else nouns or f'{noun}s'}"
