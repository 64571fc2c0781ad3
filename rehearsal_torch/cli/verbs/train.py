"""The verb train: fits a surrogate to a problem's observations, saves it, and previews its decisions."""

from omegaconf import DictConfig

from rehearsal_torch.cli.batch_decisions import decide, sharing, teller
from rehearsal_torch.cli.run_summary import asked, closing
from rehearsal_torch.cli.settled import settled
from rehearsal_torch.cli.spelling import typed_again
from rehearsal_torch.cli.verbs.fitting import compared, curved, fit, noted, record_built
from rehearsal_torch.run_folder import RunFolder


def work(config: DictConfig, folder: RunFolder, sweep: bool) -> str:
    """One training; returns a sentence on it."""
    with sharing(config, config.learn, sweep, teller(config, sweep)) as workers:
        run, _, choice = settled(config, folder, sweep, workers)
        surrogate = fit(run, folder, workers)
        record_built(run, folder, surrogate)
        limit = int(config.preview) if config.limit is None else int(config.limit)
        count = decide(run, folder, surrogate, limit=limit, sweep=sweep, choice=choice)
    if config.truth:
        compared(run, folder, surrogate)
    curved(run, folder, surrogate)
    overrides = [
        text
        for text in folder.read_json("run.json")["overrides"]
        if not text.startswith(("surrogate", "trainer", "logger", "limit=", "preview="))
    ]
    following = typed_again("decide", [*overrides, f"checkpoint={folder.path / 'checkpoint'}"])
    closing(
        folder,
        sweep,
        following,
        tables=asked(run.config, "tables"),
        told=[*run.problem.facts().notes, *([] if choice is None else [choice.why])],
    )
    noted(folder)
    return f"trained, and decided for {count} cases"
