"""Which changes are allowed at all, beside a plain loop over steps, actions and doses."""

from itertools import product

import torch
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rehearsal_torch.objectives.change_rules import ChangeRules
from tests.places import CONF

NAMES, LEVELS = ("drug", "water"), 3
DOSES = torch.tensor([[a, 10.0 * b] for a, b in product((0.0, 2.0, 5.0), range(LEVELS))])


def plainly(rules, observed):
    """The same for doses of three levels, one after the other."""
    found = []
    for step, given_ in enumerate(observed):
        row = []
        for action in range(len(DOSES)):
            fits = True
            for place, name in enumerate(NAMES):
                old, new = (each // LEVELS if place == 0 else each % LEVELS for each in (given_, action))
                beside = [each // LEVELS if place == 0 else each % LEVELS for each in observed]
                near = [beside[other] for other in (step - 1, step + 1) if 0 <= other < len(observed)]
                word = rules.forbidden.get(name)
                fits &= rules.most_levels is None or abs(new - old) <= rules.most_levels
                fits &= not (new == LEVELS - 1 > old and not any(near) and name not in rules.boluses)
                fits &= not (new > old and word in ("raise", "change"))
                fits &= not (new < old and word in ("lower", "change"))
            row.append(fits)
        found.append(row)
    return torch.tensor(found)


@given(
    observed=st.lists(st.integers(0, len(DOSES) - 1), min_size=1, max_size=6),
    most=st.sampled_from([None, 1, 2]),
    boluses=st.sets(st.sampled_from(NAMES)),
    forbidden=st.dictionaries(st.sampled_from(NAMES), st.sampled_from(["raise", "lower", "change"])),
)
def test_the_rules_are_those_of_a_plain_loop(observed, most, boluses, forbidden):
    rules = ChangeRules(most_levels=most, boluses=sorted(boluses), forbidden=forbidden)
    allowed = rules.allowed(NAMES, DOSES, torch.tensor(observed))
    assert torch.equal(allowed, plainly(rules, observed))
    assert allowed[torch.arange(len(observed)), observed].all(), "doing as was done is no change"


@given(
    observed=st.lists(st.integers(0, len(DOSES) - 1), min_size=1, max_size=6),
    chosen=st.lists(st.integers(0, len(DOSES) - 1), min_size=6, max_size=6),
    boluses=st.sets(st.sampled_from(NAMES)),
)
def test_a_single_highest_dose_is_found_in_what_was_chosen(observed, chosen, boluses):
    rules, chosen = ChangeRules(boluses=sorted(boluses)), chosen[: len(observed)]
    single = False
    for place, name in enumerate(NAMES):
        old, new = (
            [each // LEVELS if place == 0 else each % LEVELS for each in some] for some in (observed, chosen)
        )
        for step, level in enumerate(new):
            near = [new[other] for other in (step - 1, step + 1) if 0 <= other < len(new)]
            single |= name not in boluses and level == LEVELS - 1 > old[step] and not any(near)
    assert rules.singles(NAMES, DOSES, torch.tensor(observed), torch.tensor(chosen)) == single


def test_levels_with_names_may_be_the_highest_in_a_single_step():
    rules, steps = ChangeRules(named=["drug"]), torch.tensor([0, 0, 0])
    assert rules.allowed(NAMES, DOSES, steps)[:, 6].all()
    assert not rules.allowed(NAMES, DOSES, steps)[:, 2].any()


def test_a_dose_that_is_given_or_not_has_no_highest_one_among_several():
    doses = torch.tensor([[0.0], [3.0]])
    assert ChangeRules().allowed(["drug"], doses, torch.tensor([0, 0, 0])).all()


def test_rules_as_a_configuration_has_them():
    conf = yaml.safe_load((CONF / "objective/counterfactual_return.yaml").read_text(encoding="utf-8"))[
        "rules"
    ]
    assert (
        ChangeRules(**{key: value for key, value in conf.items() if not key.startswith("_")}) == ChangeRules()
    )
