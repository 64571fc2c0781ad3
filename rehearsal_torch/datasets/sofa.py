"""SOFA: how far six organs have failed, by the AI-Clinician's rules for one four-hour step.

Each organ scores 0 to 4; the score is their sum, 0 to 24.

    organ           measured                             1        2        3        4
    lungs           PaO2 / FiO2 (mmHg)                   <= 400   < 300    < 200    < 100
    coagulation     platelets (10^9 / L)                 <= 150   < 100    < 50     < 20
    liver           bilirubin (mg / dL)                  >= 1.2   >= 2     >= 6     > 12
    circulation     mean pressure (mmHg), vasopressor    < 70     < 65     > 0      > 0.1 mcg/kg/min
    nerves          Glasgow coma scale                   <= 14    <= 12    <= 9     <= 5
    kidneys         creatinine (mg / dL)                 >= 1.2   >= 2     >= 3.5   > 5
                    urine (mL in four hours)                               < 84     < 34

The circulation scores the vasopressor given in the very step that is scored.

Source: Vincent et al. (1996), The SOFA score; Komorowski et al. (2018) for the four-hour urine limits.
"""

import torch
from torch import Tensor


def sofa(states: Tensor, vasopressor: Tensor) -> Tensor:
    """The score of four-hour steps.

    Args:
        states: FiO2 (fraction), PaO2, platelets, bilirubin, Glasgow coma scale, mean pressure, creatinine, urine, (..., 8).
        vasopressor: Norepinephrine equivalent in mcg/kg/min, (...), broadcast against the states.

    Returns:
        Whole numbers 0 ... 24, (...), in the states' precision.
    """
    oxygen, arterial, platelets, bilirubin, glasgow, pressure, creatinine, urine = states.unbind(-1)
    ratio = arterial / oxygen
    lungs = _count(ratio <= 400, ratio < 300, ratio < 200, ratio < 100)
    blood = _count(platelets <= 150, platelets < 100, platelets < 50, platelets < 20)
    liver = _count(bilirubin >= 1.2, bilirubin >= 2, bilirubin >= 6, bilirubin > 12)
    given = torch.where(vasopressor > 0.1, 4, torch.where(vasopressor > 0, 3, 0)).to(torch.int8)
    heart = torch.maximum(_count(pressure < 70, pressure < 65), given)
    nerves = _count(glasgow <= 14, glasgow <= 12, glasgow <= 9, glasgow <= 5)
    output = torch.where(urine < 34, 4, torch.where(urine < 84, 3, 0)).to(torch.int8)
    kidneys = torch.maximum(_count(creatinine >= 1.2, creatinine >= 2, creatinine >= 3.5, creatinine > 5), output)
    return (lungs + blood + liver + heart + nerves + kidneys).to(states.dtype)


def _count(*reached: Tensor) -> Tensor:
    """How many limits are reached."""
    total = reached[0].to(torch.int8)
    for limit in reached[1:]:
        total = total + limit
    return total
