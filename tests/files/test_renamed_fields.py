from rehearsal_torch.files.renamed_fields import RENAMED_FIELDS, current_cell, current_fields


def test_fields_of_earlier_versions_are_translated_where_they_stand():
    before = {
        "trace": {"search": "x", "believed": 1.0, "pushes": [0.5], "steps": 3},
        "score": {"brier_untouched": 0.25, "believed": 2.0},
        "believed": 3.0,
    }
    after = current_fields(before, RENAMED_FIELDS)
    assert after == {
        "trace": {"search": "x", "predicted_reward": 1.0, "perturbations": [0.5], "steps": 3},
        "score": {"brier_no_action": 0.25, "believed": 2.0},
        "believed": 3.0,
    }
    assert list(after["trace"]) == ["search", "predicted_reward", "perturbations", "steps"]
    assert before["trace"]["believed"] == 1.0, "the original is unchanged"


def test_any_name_may_stand_where_the_table_has_a_star():
    table = {"a.*.old": "a.*.new", "a.b.other": "a.b.another"}
    content = {"a": {"b": {"old": 1, "other": 2}, "c": {"old": 3, "other": 4}, "old": 5}}
    assert current_fields(content, table) == {
        "a": {"b": {"new": 1, "another": 2}, "c": {"new": 3, "other": 4}, "old": 5}
    }


def test_what_is_no_mapping_or_has_both_names_stays():
    assert current_fields({"trace": None, "score": [1]}, RENAMED_FIELDS) == {"trace": None, "score": [1]}
    both = {"trace": {"believed": 1, "predicted_reward": 2}}
    assert current_fields(both, RENAMED_FIELDS) == both


def test_cells_are_translated_in_their_own_column():
    assert current_cell("estimator", "observed course") == "observed trajectory"
    assert current_cell("name", "observed course") == "observed course"
    assert current_cell("quantity", "mean") == "mean"
