"""A round of a run, one case with its decision, and the line of JSON that records it.

A line holds no clock times, so that it is equal, byte for byte, however often a run was interrupted and
however many processes shared it; NaN and the infinities, which JSON lacks, are written as null.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rehearsal_torch.data.finding import Finding, findings_of

if TYPE_CHECKING:
    from rehearsal_torch.data.decision import Decision, DecisionContext
    from rehearsal_torch.data.table import Table


@dataclass(frozen=True)
class Round:
    """One case, its decision and the assessment of it.

    Attributes:
        certificate: Bounds under the model, name to number, and what they bound, as text; None without one.
        score: The problem's own metrics of the decision.
        answer: The world's response in an online run, one or more rows; None otherwise.
        success: Whether the response is a success; None if it, or the world's definition of it, is missing.
        reward: The reward of the response, averaged over its rows; None without one.
        trajectory: For an episode, the counterfactual one under the decision
            (`CounterfactualReturn.trajectory`); empty otherwise.
    """

    index: int
    case: "DecisionContext"
    decision: "Decision"
    certificate: Mapping[str, float | str] | None
    score: Mapping[str, float]
    answer: "Table | None" = None
    success: bool | None = None
    reward: float | None = None
    trajectory: Mapping[str, Any] = field(default_factory=dict)
    kind: str = ""

    def line(self) -> str:
        """The round as a line of JSON."""
        gain_draws = None if self.decision.alteration is None else self.decision.draws
        draws = {} if gain_draws is None else {"draws": gain_draws.to_dict()}
        certificate = {} if self.certificate is None else {"certificate": dict(self.certificate)}
        trajectory = {"trajectory": dict(self.trajectory)} if self.trajectory else {}
        record = {
            "index": self.index,
            "kind": self.kind,
            **self.case.facts(),
            **self.decision.to_dict(),
            **draws,
            **trajectory,
            **certificate,
            "score": dict(self.score),
        }
        if self.answer is not None:
            rows = dict(zip(self.answer.names, self.answer.values.mT.tolist(), strict=True))
            record |= {
                "success": self.success,
                **({} if self.reward is None else {"reward": self.reward}),
                "answer": {"rows": rows, "altered": self.answer.altered.nonzero().tolist()},
            }
        return json.dumps(nulls_for_nan(record), ensure_ascii=False, allow_nan=False)


def decision_of(line: Mapping[str, Any]) -> "Decision":
    """The decision recorded in a line; null is read as NaN."""
    import torch

    from rehearsal_torch.data.decision import Decision, Estimate
    from rehearsal_torch.data.sensitivity import HiddenCause, Sensitivity
    from rehearsal_torch.spaces.box import Alteration

    def alteration(key: str) -> Alteration | None:
        if (entry := line.get(key)) is None:
            return None
        values = torch.tensor(list(entry.values()), dtype=torch.float64)
        return Alteration(tuple(entry), values.mT if values.ndim > 1 else values)

    estimates: dict[str, Any] = {
        key: Estimate(entry["point"], entry["of"], entry.get("lower"), entry.get("upper"), entry.get("level"))
        for key in ("estimate", "baseline", "unchanged", "gain")
        if (entry := line.get(key)) is not None
    }
    return Decision(
        alteration("alteration"),
        math.nan if line["value"] is None else float(line["value"]),
        **estimates,
        cost=line.get("cost"),
        worth=line.get("worth"),
        recommendation=alteration("recommendation"),
        doses={name: tuple(doses) for name, doses in line.get("doses", {}).items()},
        findings=findings_of(line),
        reason=None if line["reason"] is None else Finding.of(line["reason"]),
        sensitivity=Sensitivity.of(line["sensitivity"]) if "sensitivity" in line else None,
        hidden_cause=HiddenCause.of(line["hidden_cause"]) if "hidden_cause" in line else None,
        trace=dict(line["trace"]),
    )


def answered(line: Mapping[str, Any]) -> "Table":
    """The world's response recorded in a line of an online run, equal to the last bit."""
    import torch

    from rehearsal_torch.data.table import Table

    answer = line["answer"]
    recorded = answer["rows"].values()
    columns = [[math.nan if value is None else value for value in column] for column in recorded]
    values = torch.tensor(columns, dtype=torch.float64).mT.contiguous()
    altered = torch.zeros_like(values, dtype=torch.bool)
    for row, column in answer["altered"]:
        altered[row, column] = True
    return Table(tuple(answer["rows"]), values, altered)


def nulls_for_nan(value: Any) -> Any:
    """Plain data with None in place of NaN and the infinities."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: nulls_for_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [nulls_for_nan(item) for item in value]
    return value
