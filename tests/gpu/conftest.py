"""Where the tests of this folder train and decide: on a GPU (make test-gpu), and on the CPU (make
test-bench), so that all of them run on machines without a GPU too.
"""

import pytest
import torch


@pytest.fixture(params=[pytest.param("cpu", marks=pytest.mark.bench), "cuda"])
def place(request):
    """The type of the device."""
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("torch sees no CUDA device")
    return request.param


@pytest.fixture
def pair(place):
    """The same, with two devices: GPUs, or processes on the CPU."""
    if place == "cuda" and torch.cuda.device_count() < 2:
        pytest.skip("torch sees one CUDA device")
    return place
