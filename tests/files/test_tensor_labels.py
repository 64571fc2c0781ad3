"""Labels of tensor files: written in one order, read by the library, and no number moved."""

import hashlib
import subprocess
import sys

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.torch import load, save

from rehearsal_torch.files.tensor_labels import LONGEST, labelled, labels_in, labels_of

TENSORS = {
    "b": torch.arange(6, dtype=torch.float64).reshape(2, 3) / 7,
    "a": torch.tensor([True, False, True]),
    "empty": torch.zeros(0, 2),
}
TEXTS = st.text(st.characters(codec="utf-8"), max_size=40)


@given(labels=st.dictionaries(TEXTS, TEXTS, max_size=5), before=st.none() | st.just({"x": "y"}))
def test_labels_are_read_by_the_library_and_every_number_stays(tmp_path_factory, labels, before):
    content = labelled(save(TENSORS, metadata=before), labels)
    found = load(content)
    assert set(found) == set(TENSORS)
    assert all(torch.equal(found[name], TENSORS[name]) for name in TENSORS)
    assert labels_in(content) == labels
    path = tmp_path_factory.mktemp("labels") / "w.safetensors"
    path.write_bytes(content)
    assert labels_of(path) == labels
    # Numbers begin at a multiple of 8 bytes, as the format asks for.
    assert int.from_bytes(content[:8], "little") % 8 == 0


@pytest.mark.slow
def test_the_same_content_is_the_same_to_the_last_byte_in_every_process():
    code = (
        "import hashlib, torch; from safetensors.torch import save;"
        "from rehearsal_torch.files.tensor_labels import labelled;"
        "names = [f'label {i}' for i in range(20)];"
        "content = labelled(save({'a': torch.ones(3)}), dict.fromkeys(names, 'x'));"
        "print(hashlib.sha256(content).hexdigest())"
    )
    found = {
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    }
    here = labelled(
        save({"a": torch.ones(3)}), dict.fromkeys((f"label {one}" for one in reversed(range(20))), "x")
    )
    assert found == {hashlib.sha256(here).hexdigest() + "\n"}


def test_long_texts_are_cut_and_many_labels_refused():
    assert labels_in(labelled(save(TENSORS), {"a": "x" * 10_000})) == {"a": "x" * LONGEST}
    with pytest.raises(ValueError, match="at most 50 labels of a tensor file; got 51"):
        labelled(save(TENSORS), {str(one): "" for one in range(51)})


def test_a_file_without_labels_has_none(tmp_path):
    path = tmp_path / "w.safetensors"
    path.write_bytes(save(TENSORS))
    assert labels_of(path) == {} == labels_in(path.read_bytes())
    with safe_open(str(path), framework="pt") as file:
        assert file.metadata() is None
