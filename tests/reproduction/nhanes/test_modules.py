import numpy as np
import pytest

from rehearsal_torch.problems.nhanes.nhanes_generator import VARIABLES
from reproduction.nhanes.modules import CYCLES, columns_of, merged, read_module
from tests.places import DATA
from tests.toys.transport import write

MODULES = DATA / "nhanes"
needs_modules = pytest.mark.skipif(not MODULES.is_dir(), reason=f"the CDC's modules are not in {MODULES}")
# One participant, complete: module, column, value; BPX stands for BPXO in the last cycle.
COMPLETE = {
    "RIDAGEYR": 50, "RIAGENDR": 2, "RIDRETH3": 3, "MCQ300C": 2, "DMDEDUC2": 4, "INDFMPIR": 2.5,
    "BMXBMI": 27.1, "DR1TKCAL": 2000, "DR1TCARB": 250,
    "DR1TFIBE": 17.5, "PAD680": 300, "BPXSY1": 120, "BPXDI1": 0, "BPXOSY1": 118, "BPXODI1": 71, "LBXTC": 190,
    "LBDHDD": 55, "LBXGH": 5.4, "LBXGLU": 95,
}  # fmt: skip
# Participants that fail somewhere, each by one change.
FAULTS = (
    {"RIDAGEYR": 19},
    {"LBXGH": None},
    {"PAD680": 9999},
    {"PAD680": 7777},
    {"DMDEDUC2": 7},
    {"DMDEDUC2": 9},
    {"MCQ300C": 9},
    {"DR1TFIBE": None},
)
KEPT = ({}, {"MCQ300C": 1}, {"INDFMPIR": 0}, {"DR1TKCAL": 0})


def small_modules(folder, lower=False):
    """Twelve participants a cycle; those with faults first."""
    for number, cycle in enumerate(CYCLES):
        people = [COMPLETE | change for change in (*FAULTS, *KEPT)]
        identities = [1000 * (number + 1) + place for place in range(len(people))]
        for module, columns in columns_of(cycle).items():
            name = f"{module}_{cycle}.xpt" if lower else f"{module}_{cycle}.XPT"
            # Other modules than DEMO lack some participants, in no order.
            order = list(range(len(people)))[::-1] if module == "GLU" else list(range(len(people)))
            table = {"SEQN": [identities[place] for place in order], "OTHER": [1.0 for _ in order]}
            write(
                folder / name,
                table | {column: [people[place][column] for place in order] for column in columns},
            )
    return folder


@needs_modules
def test_the_published_modules_give_the_papers_cases():
    cohort = merged(MODULES)
    left = cohort.attrition.set_index("required")["left"]
    assert (left.iloc[0], left["aged 20 or more"], left["HbA1c and FPG measured"], left.iloc[-1]) == (
        39156,
        22617,
        9921,
        7465,
    )
    assert cohort.attrition.iloc[-1][list(CYCLES.values())].tolist() == [1869, 1979, 1898, 1719]
    assert cohort.unlike == ()
    assert len(cohort.cases) == cohort.cases["SEQN"].nunique() == 7465
    assert ((cohort.cases["HbA1c"] < 5.7) & (cohort.cases["FPG"] < 100)).mean() == pytest.approx(
        0.3622, abs=5e-5
    )
    assert (cohort.cases["DBP"] == 0).sum() == 28
    assert cohort.cases[list(VARIABLES)].notna().all(axis=None)
    assert cohort.cases["Sedentary_min"].max() == 1380


@pytest.mark.parametrize("lower", [False, True])
def test_faults_are_counted_and_codes_are_missing(tmp_path, lower):
    cohort = merged(small_modules(tmp_path, lower))
    left = cohort.attrition.set_index("required")["left"]
    assert (
        left.to_dict()
        | {
            "participants": 48,
            "aged 20 or more": 44,
            "HbA1c and FPG measured": 40,
            "FamilyHx_Diabetes known": 36,
        }
        == left.to_dict()
    )
    assert (
        left["Education known"],
        left["FiberIntake known"],
        left["Sedentary_min known"],
        left["HDL known"],
    ) == (28, 24, 16, 16)
    assert len(cohort.cases) == 16
    assert cohort.cases["FamilyHx_Diabetes"].tolist() == [0.0, 1.0, 0.0, 0.0] * 4
    assert cohort.cases["Income_Ratio"].tolist() == [2.5, 2.5, 0.0, 2.5] * 4
    assert cohort.cases.groupby("cycle")["SBP"].unique().map(list).to_dict() == {
        years: [118.0 if years == "2017-2018" else 120.0] for years in CYCLES.values()
    }
    assert (cohort.cases.loc[cohort.cases["cycle"] != "2017-2018", "DBP"] == 0).all()
    assert len(cohort.unlike) == 40


def test_zeros_are_zeros(tmp_path):
    write(tmp_path / "ZERO.XPT", {"SEQN": [2, 1], "A": [0, -1.5], "B": [None, 1e-3]})
    frame = read_module(tmp_path / "ZERO.XPT", ["A", "B"])
    assert frame["A"].tolist() == [-1.5, 0.0]
    assert np.isnan(frame["B"].tolist()[1])
    assert frame["B"].tolist()[0] == pytest.approx(1e-3)


def test_all_faults_of_a_folder_are_told(tmp_path):
    with pytest.raises(ValueError, match="no such folder"):
        merged(tmp_path / "nowhere")
    small_modules(tmp_path)
    (tmp_path / "HDL_G.XPT").unlink()
    (tmp_path / "GLU_J.XPT").unlink()
    with pytest.raises(ValueError, match=r"2 of 40 modules are missing \(HDL_G, GLU_J\): add download=true"):
        merged(tmp_path)
    (tmp_path / "HDL_G.XPT").write_text("<html>moved</html>")
    write(tmp_path / "GLU_J.XPT", {"SEQN": [1], "OTHER": [2]})
    write(tmp_path / "PAQ_H.XPT", {"SEQN": [1, 1], "PAD680": [2, 3]})
    with pytest.raises(ValueError, match=r"HDL_G\.XPT cannot be read") as progress:
        merged(tmp_path)
    assert "GLU_J.XPT has no column LBXGLU" in str(progress.value)
    assert "PAQ_H.XPT names 1 participants twice" in str(progress.value)
