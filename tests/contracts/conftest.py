"""With ``--device``, the rehearsal models of all contracts decide on that device."""

import pytest


@pytest.fixture(autouse=True, scope="session")
def moved(request):
    """Models that contracts fit are moved to the device that was asked for."""
    kind = request.config.getoption("--device")
    if kind is None:
        yield
        return
    import torch

    from tests.toys.place import Place
    from tests.toys.rehearsal_methods import MOVED_TO

    if kind == "cuda" and not torch.cuda.is_available():
        yield
        return
    with Place(kind).entered() as device:
        MOVED_TO.append(device)
        yield
        MOVED_TO.pop()
