"""Decisions from tables by every method: the same rows in another form give the same answer.

Exactly the same: units by powers of two, other names, other names of classes, the order of columns and of
rows, other files, further columns. Units by powers of ten from 1e-12 to 1e12: doses within 1e-4 of the box,
claims within 1e-4. Two texts without a stated order are coded in the order of the alphabet: exchanged, the
claim stays within a quarter of its interval.
"""

import re
from functools import cache

import numpy as np
import pandas as pd
import pytest

import rehearsal_torch as rt

pytestmark = pytest.mark.filterwarnings("ignore::rehearsal_torch.user_error.RequestWarning")
TASK = {
    "graph": ["x -> {u a y}", "{ward smoker} -> {u a y}", "u -> {a y}", "a -> y"],
    "context": ["x", "ward", "smoker"],
    "codings": {"ward": "categorical", "smoker": "binary"},
}
CASES = ({"x": 1.0, "ward": "A", "smoker": "no"}, {"x": 2.5, "ward": "C", "smoker": "yes"})
BOX, WANTED = (2.0, 10.0), 7.0


def plain_rows():
    random, n = np.random.default_rng(0), 160
    x, ward = random.normal(2, 1, n), random.choice(["A", "B", "C"], n, p=[0.5, 0.3, 0.2])
    smoker = random.choice(["no", "yes"], n, p=[0.6, 0.4])
    u = 0.5 * x + random.normal(0, 1, n) + 0.5 * (ward == "B")
    a = np.clip(5 + x + u + random.normal(0, 1.5, n), 0, 12)
    y = a - 0.5 * u + 0.4 * x + 0.6 * (smoker == "yes") + 0.5 * (ward == "C") + random.normal(0, 1, n)
    return pd.DataFrame({"x": x, "u": u, "ward": ward, "smoker": smoker, "a": a, "y": y})


def asked(rows=None, units=None, texts=None, names=None, **task):
    """Rows, task and cases, the unit of the action and its name, after a change."""
    rows, units = plain_rows() if rows is None else rows, units or {}
    names = {name: (names or {}).get(name, name) for name in plain_rows()}
    if isinstance(rows, pd.DataFrame):
        rows = rows.assign(**{name: rows[name] * unit for name, unit in units.items()})
        rows = rows.replace(texts or {}).rename(columns=names)
    unit = {name: units.get(name, 1.0) for name in names}
    cases = [
        {names[name]: (texts or {}).get(name, {}).get(value, value) for name, value in case.items()}
        for case in CASES
    ]
    for case in cases:
        case[names["x"]] *= unit["x"]
    graph = [re.sub(r"\w+", lambda word: names[word[0]], line) for line in TASK["graph"]]
    whole = {
        "graph": graph,
        "context": [names[name] for name in TASK["context"]],
        "codings": {names[name]: each for name, each in TASK["codings"].items()},
        "box": {names["a"]: [end * unit["a"] for end in BOX]},
        "region": {names["y"]: [WANTED * unit["y"], None]},
        **task,
    }
    return rows, whole, cases, unit["a"]


def shuffled(rows):
    return rows.iloc[np.random.default_rng(1).permutation(len(rows))].reset_index(drop=True)


def further(rows):
    random = np.random.default_rng(5)
    rows = rows.assign(note="none", aa=random.integers(0, 3, len(rows)))
    rows.insert(0, "zz", random.normal(size=len(rows)))
    return rows


POWERS = {"x": 2.0**7, "u": 2.0**-30, "a": 2.0**40, "y": 2.0**-35}
EXACT = {
    "units": lambda: asked(units=POWERS),
    "names": lambda: asked(
        names={"x": "zeta", "u": "b1", "ward": "Ort", "smoker": "q", "a": "Dose", "y": "c"}
    ),
    "classes": lambda: asked(texts={"ward": {"A": "zebra", "B": "mule", "C": "ant"}}),
    "levels": lambda: asked(
        texts={"smoker": {"no": "Nein", "yes": "ja"}},
        codings={"ward": "categorical", "smoker": ["Nein", "ja"]},
    ),
    "columns": lambda: asked(plain_rows()[["y", "smoker", "a", "ward", "u", "x"]]),
    "further": lambda: asked(further(plain_rows())),
    "rows": lambda: asked(shuffled(plain_rows())),
}
TENS = {
    "small": lambda: asked(units=dict.fromkeys(POWERS, 1e-12)),
    "large": lambda: asked(units=dict.fromkeys(POWERS, 1e12)),
    "mixed": lambda: asked(units={"x": 1e12, "u": 1e-12, "a": 1e-9, "y": 1e9}),
}
FILES = {
    "csv": lambda rows, file: rows.to_csv(file, index=False),
    "semicolons.csv": lambda rows, file: rows.to_csv(file, index=False, sep=";", decimal=","),
    "parquet": lambda rows, file: rows.to_parquet(file),
}
QUICK = ["none", "outcome_regression"]
SLOW = [*("qwz23_offline", "qwz23_success", "qwz23_online", "qwz23_published", "micns_online", "grad_rh")]
METHODS = [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)]
of_method = pytest.mark.parametrize("method", METHODS)


def answers(method, question):
    """For each case the status, the dose in the unit of the plain rows, the claim and that without action."""
    rows, task, cases, unit = question
    found = []
    for each in rt.rehearse(rows, task, cases, method=method, seed=3):
        dose = None if each.alteration is None else float(each.alteration.values[0]) / unit
        claims = [
            number
            for claim in (each.estimate, each.baseline)
            if claim is not None
            for number in (claim.point, claim.lower, claim.upper)
        ]
        found.append((each.status, dose, claims))
    return found


@cache
def plain(method):
    return answers(method, asked())


def near(found, wanted, dose, claim):
    """Whether the answers are the same but for so much of the box, and so much of a claim."""
    for (status, set_to, claims), (same, known, others) in zip(found, wanted, strict=True):
        assert status == same
        assert (set_to is None) == (known is None)
        if set_to is not None and dose is not None:
            assert abs(set_to - known) <= dose * (BOX[1] - BOX[0])
        for number, other in zip(claims, others, strict=True):
            assert (number is None) == (other is None)
            assert number is None or abs(number - other) <= claim


@of_method
@pytest.mark.parametrize("change", EXACT)
def test_the_answer_is_exactly_the_same(method, change):
    assert answers(method, EXACT[change]()) == plain(method)


@of_method
@pytest.mark.parametrize("form", FILES)
def test_the_form_of_the_file_changes_nothing(method, form, tmp_path):
    file = tmp_path / f"rows.{form}"
    FILES[form](plain_rows(), file)
    assert answers(method, asked(file)) == plain(method)


@of_method
@pytest.mark.parametrize("change", TENS)
def test_units_by_powers_of_ten_change_hardly_anything(method, change):
    near(answers(method, TENS[change]()), plain(method), 1e-4, 1e-4)


@of_method
def test_exchanged_codes_of_two_texts_leave_the_claim_within_a_quarter_of_its_interval(method):
    wanted = plain(method)
    widths = [claims[2] - claims[1] for _, _, claims in wanted if claims and claims[1] is not None]
    found = answers(method, asked(texts={"smoker": {"no": "off", "yes": "Aye"}}))
    near(found, wanted, None, max(0.25 * max(widths, default=0.0), 0.03))
