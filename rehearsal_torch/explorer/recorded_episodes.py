"""The fitted model of a run of episodes, with the episodes themselves.

A checkpoint holds no episodes: they are read again from where the run had them, and must be those of the run,
since answers are computed from the noise that the model finds in them.
"""

from dataclasses import dataclass
from pathlib import Path

from omegaconf import OmegaConf

from rehearsal_torch.api.configured import undisturbed
from rehearsal_torch.api.load import NEEDED
from rehearsal_torch.checkpoint import load
from rehearsal_torch.data.decision import EpisodeCase
from rehearsal_torch.explorer.run_material import checkpoint_of, settings
from rehearsal_torch.methods.run import Run, build, suits
from rehearsal_torch.reporting.page.material import Material
from rehearsal_torch.surrogates.surrogate import EpisodeSurrogate
from rehearsal_torch.user_error import UserError

# The episodes of a run that the page offers.
MOST = 200


@dataclass(frozen=True)
class OpenedEpisodes:
    """A fitted model of episodes, and what its folder says.

    Attributes:
        run: Problem, objective and search, as the run built them.
        cases: The episodes that the run decided for, up to `MOST`; those of its split if it decided for none.
        more: How many further ones there are.
        material: Data card, decisions and configuration.
    """

    surrogate: EpisodeSurrogate
    run: Run
    cases: tuple[EpisodeCase, ...]
    more: int
    material: Material


def opened_episodes(of: Material) -> OpenedEpisodes:
    """Reads the model of a run of episodes, and its episodes.

    Raises:
        UserError: if checkpoint or configuration are missing, the episodes cannot be read, or they are not
            those of the run.
        ValueError: if checkpoint or files are damaged.
    """
    folder = of.run.path
    config = settings(of, (*NEEDED, "dataset", "surrogate"))
    surrogate = load(checkpoint_of(folder, config))
    if not isinstance(surrogate, EpisodeSurrogate):
        raise UserError(f"expected a model of episodes; got a {type(surrogate).__name__}", str(folder))
    with undisturbed():
        run = _built(config, folder)
        suits(run, surrogate)
        _same(run, of, folder)
        named = [(decision.get("index"), decision.get("identity")) for decision in of.run.decisions]
        named = named or [(index, None) for index in range(run.problem.count())]
        cases = [_case(run, index, name, folder) for index, name in named[:MOST]]
        if not cases:
            raise UserError("holds no episodes to look back at", str(folder))
    return OpenedEpisodes(surrogate, run, tuple(cases), len(named) - len(cases), of)


def _built(config: dict[str, object], folder: Path) -> Run:
    try:
        run = build(OmegaConf.create(config))
    except (UserError, ValueError) as error:
        raise UserError(
            f"the episodes of the run cannot be read: {str(error).rstrip('.')}",
            str(folder),
            "A run keeps no episodes: have its data where they were, and start where the run was started",
        ) from None
    if run.kind != "look_back":
        raise UserError(f"expected a data set of episodes; got one of kind {run.kind}", str(folder))
    return run


def _same(run: Run, of: Material, folder: Path) -> None:
    """Refuses data that are not those of the run."""
    known, table = of.record.get("data_fingerprint"), of.card.get("fingerprint")
    changed = isinstance(known, str) and run.problem.observations().fingerprint() != known
    if changed or (table is not None and table != run.problem.card().get("fingerprint")):
        raise _changed(folder)


def _case(run: Run, index: object, name: object, folder: Path) -> EpisodeCase:
    """The episode of an index, which has to have the name that was recorded with it."""
    known = isinstance(index, int) and 0 <= index < run.problem.count()
    case = run.problem.case(index) if isinstance(index, int) and known else None
    if not isinstance(case, EpisodeCase) or (name is not None and str(name) != case.identity):
        raise _changed(folder)
    return case


def _changed(folder: Path) -> UserError:
    return UserError(
        "the episodes are no longer those of the run: its data, or its decisions, have changed since",
        str(folder),
        "Restore the files from a copy, or decide again",
    )
