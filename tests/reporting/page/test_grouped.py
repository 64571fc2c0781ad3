"""Sentences that cases share."""

from rehearsal_torch.reporting.page.grouped import grouped, name_of


def test_a_sentence_stands_once_with_its_cases():
    made = grouped([("a", "far"), ("b", "near"), ("c", "far")], 3)
    assert made.count("<li>") == 2
    assert 'far<span class="soft"> (cases a, c)</span>' in made
    assert 'near<span class="soft"> (case b)</span>' in made
    assert "(all 2 runs)" in grouped([("a", "x"), ("b", "x")], 2, "run")
    assert "(all 2 units of plant)" in grouped([("a", "x"), ("b", "x")], 2, "unit of plant", "units of plant")
    assert grouped([], 5) == ""


def test_many_cases_are_counted():
    many = grouped([(str(number), "x") for number in range(12)], 20)
    assert "(cases 0, 1, 2, 3, 4, 5, 6, 7 and 4 more)" in many
    nine = grouped([(str(number), "x") for number in range(9)], 20)
    assert "7, 8)" in nine


def test_a_case_has_its_identity_or_its_number_as_name():
    assert name_of({"identity": "ann", "index": 3}) == "ann"
    assert name_of({"index": 3}) == "3"
    assert name_of({"identity": "", "index": 0}) == "0"
