"""The curves of a merged run: `claims.csv` for cases of a table, `surrogate.csv` for trials.

A shard has some of the decisions, and which of them have curves depends on all: those with the largest, the
median and the smallest difference. The curves are therefore made after the merging, by the model and the data
that the shards used: the checkpoint and the data set of the merged configuration, with the fingerprint of the
data that the shards recorded. Where one of them is no longer there, the run is merged without curves, and a
sentence says what is missing.

The configuration lies in a folder that others may have written: unless it was typed on this command line,
nothing is built of it but what a resumed folder may build (`cli.allowed`).

Source: ours.
"""

import sys
from collections.abc import Sequence

from rehearsal_torch.cli.allowed import trusted_modules
from rehearsal_torch.cli.errors import UserError, as_user_error, user_error_from
from rehearsal_torch.run_folder import RunFolder

_FILES = {"rehearse": "claims.csv", "optimise": "surrogate.csv"}


def without_curves(merged: RunFolder) -> None:
    """Removes the curves of an earlier merging, whose decisions were others, with their figures.

    Args:
        merged: The folder of the merged run.
    """
    for name in _FILES.values():
        (merged.path / name).unlink(missing_ok=True)
        for drawn in (merged.path / "figures").glob(f"{name.removesuffix('.csv')}*"):
            drawn.unlink()


def with_curves(merged: RunFolder, trusted: Sequence[str] | None) -> bool:
    """Makes the curves of a merged run, as a run of its own would have; for episodes there are none.

    Args:
        merged: The folder of the merged run.
        trusted: Modules and classes outside this package that may be built; None if the configuration was
            typed on this command line.

    Returns:
        Whether they were made, or there are none to make; otherwise it was said why.
    """
    name = _FILES.get(merged.read_json("run.json").get("kind", ""))
    if name is None or (merged.path / name).is_file():
        return True
    try:
        _made(merged, trusted)
    except Exception as error:
        wrong = user_error_from(error)
        if wrong is None:
            raise
        print(
            f"Merged without {name} and its figure, for which the checkpoint and the data are read again: "
            f"{wrong}",
            file=sys.stderr,
            flush=True,
        )
        return False
    return True


def _made(merged: RunFolder, trusted: Sequence[str] | None) -> None:
    from omegaconf import OmegaConf

    from rehearsal_torch.checkpoint import load
    from rehearsal_torch.cli.build import screen
    from rehearsal_torch.cli.choice.settled import settled
    from rehearsal_torch.cli.run import suits
    from rehearsal_torch.cli.verbs.fitting import curved

    content = merged.read_yaml("config.yaml") | {"trusted": None if trusted is None else list(trusted)}
    config = OmegaConf.create(content)
    if config.get("checkpoint") is None:
        raise UserError("names no checkpoint", str(merged.path / "config.yaml"))
    screen(config)
    run, _, _ = settled(config, merged, sweep=True)
    with as_user_error(f"checkpoint={config.checkpoint}"):
        surrogate = load(config.checkpoint, task=run.problem.question(), trusted=trusted_modules(run.config))
    suits(run, surrogate)
    curved(run, merged, surrogate)
