"""Plain data with their sum: changes are noticed, whatever YAML makes of them."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rehearsal_torch.files.plain import PlainFileError
from rehearsal_torch.files.sealed import opened, sealed

LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text("abc> 7\n", max_size=4)
)
PLAIN = st.recursive(
    LEAVES, lambda each: st.lists(each) | st.dictionaries(st.text("xyz"), each), max_leaves=8
)


@pytest.mark.slow
@given(st.dictionaries(st.text("klm"), PLAIN, max_size=4))
def test_what_was_sealed_is_opened_alike_after_yaml(plain):
    written = yaml.safe_dump(sealed(plain), sort_keys=False)
    assert opened(yaml.safe_load(written), "card.yaml") == plain


@pytest.mark.parametrize("change", [{"a": 2}, {"b": None}, {"sha256": "0"}])
def test_changes_are_refused(change):
    with pytest.raises(PlainFileError, match=r"card\.yaml: it has changed since it was written"):
        opened({**sealed({"a": 1}), **change}, "card.yaml")


def test_the_order_of_names_counts():
    found = sealed({"a": 1, "b": 2})
    other = {name: found[name] for name in ("b", "a", "sha256")}
    with pytest.raises(PlainFileError, match="has changed"):
        opened(other, "card.yaml")


@pytest.mark.parametrize("given", [None, [1], {"a": 1}, "text"])
def test_what_has_no_sum_is_refused(given):
    with pytest.raises(PlainFileError, match="expected names and values with their sha256"):
        opened(given, "card.yaml")
