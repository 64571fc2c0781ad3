"""NHANES 2011-2018: variables, their units, and the influence graph.

Context variables influence all others. BMI influences diet, blood pressure, lipids and both outcomes;
calories influence carbohydrates, fibre, lipids and both outcomes; fibre, sedentary time, systolic pressure,
total cholesterol and HDL influence both outcomes. Carbohydrates and diastolic pressure influence nothing.

Source: Du et al. (2026), App. E.4 (variables, influence relations); the CDC's codebooks of 2011-2018 (names
and codes).
"""

from collections.abc import Mapping
from types import MappingProxyType

from rehearsal_torch.graphs.mixed_graph import RehearsalGraph

CONTEXT = ("Age", "Sex", "Race", "FamilyHx_Diabetes", "Education", "Income_Ratio")
ACTIONABLE = ("BMI", "CalIntake", "CarbIntake", "FiberIntake", "Sedentary_min")
PHYSIOLOGICAL = ("SBP", "DBP", "TotalCholesterol", "HDL")
OUTCOMES = ("HbA1c", "FPG")
INNER = ACTIONABLE + PHYSIOLOGICAL
VARIABLES = CONTEXT + INNER + OUTCOMES
UNITS: Mapping[str, str] = MappingProxyType(
    {
        "Age": "years, 80 and more are 80",
        "Sex": "1 male, 2 female",
        "Race": "RIDRETH3: 1 Mexican American, 2 other Hispanic, 3 white, 4 black, 6 Asian, 7 other (3-7 "
        "non-Hispanic)",
        "FamilyHx_Diabetes": "1 a close relative has diabetes, 0 none",
        "Education": "1 below 9th grade ... 5 college graduate",
        "Income_Ratio": "family income to poverty level, 5 and more are 5",
        "BMI": "kg/m2",
        "CalIntake": "kcal a day",
        "CarbIntake": "g a day",
        "FiberIntake": "g a day",
        "Sedentary_min": "minutes a day",
        "SBP": "mmHg",
        "DBP": "mmHg",
        "TotalCholesterol": "mg/dL",
        "HDL": "mg/dL",
        "HbA1c": "%",
        "FPG": "mg/dL",
    }
)
_TO_OUTCOMES = (
    *CONTEXT,
    "BMI",
    "CalIntake",
    "FiberIntake",
    "Sedentary_min",
    "SBP",
    "TotalCholesterol",
    "HDL",
)
PARENTS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "BMI": CONTEXT,
        "CalIntake": (*CONTEXT, "BMI"),
        "CarbIntake": (*CONTEXT, "BMI", "CalIntake"),
        "FiberIntake": (*CONTEXT, "BMI", "CalIntake"),
        "Sedentary_min": CONTEXT,
        "SBP": (*CONTEXT, "BMI"),
        "DBP": (*CONTEXT, "BMI"),
        "TotalCholesterol": (*CONTEXT, "BMI", "CalIntake"),
        "HDL": (*CONTEXT, "BMI", "CalIntake"),
        "HbA1c": _TO_OUTCOMES,
        "FPG": _TO_OUTCOMES,
    }
)
DESIRED: Mapping[str, tuple[None, float]] = MappingProxyType({"HbA1c": (None, 5.7), "FPG": (None, 100.0)})


def influence_graph(paired: bool = True, chain: bool = False) -> RehearsalGraph:
    """The influence graph; the outcomes' paired noises join them by a bi-directional edge, and the context
    variables are one clique if each depends on those before it.
    """
    bidirected = ([OUTCOMES] if paired else []) + ([CONTEXT] if chain else [])
    return RehearsalGraph.of(PARENTS, bidirected)
