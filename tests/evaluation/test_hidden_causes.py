from rehearsal_torch.data.hidden_cause import HiddenCause
from rehearsal_torch.evaluation.hidden_causes import hidden_cause_of, overall


def decided(*strengths):
    return [{"hidden_cause": HiddenCause(each, "x", 0.3, "y", 0.3).to_dict()} for each in strengths]


def test_one_sentence_for_all():
    said = overall([*decided(0.1, 0.2, 1.0), {"status": "leave"}])
    assert said == (
        "A hidden common cause that explains 20.0% of what the observed covariates leave open, of the doses "
        "and of every next state, can overturn the median recommendation (of 3: 10.0% to none); one as "
        "strong as the strongest observed covariate, x (30.0%), can overturn 2 of 3."
    )
    none = overall(decided(1.0, 1.0))
    assert none.startswith("No hidden common cause of doses and states can overturn most")


def test_one_decision_has_its_own_sentence_and_none_has_none():
    (one,) = decided(0.1)
    assert overall([one]) == hidden_cause_of(one).sentence().replace("a hidden", "A hidden", 1) + "."
    assert overall([{"status": "leave"}]) == ""
    plain = [{"hidden_cause": {"tipping": 0.1}}, {"hidden_cause": {"tipping": 0.2}}]
    assert overall(plain).endswith("(of 2: 10.0% to 20.0%).")


def test_actions_have_the_name_that_they_are_given():
    said = overall(decided(0.1, 0.2), "actions")
    assert "open, of the actions and of every next state" in said
    assert "doses" not in said + overall(decided(0.1), "actions") + overall(decided(1.0, 1.0), "actions")
