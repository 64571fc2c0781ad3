"""README.md of the campaigns whose optimum is known, from their rows."""

from collections.abc import Iterator, Sequence

from rehearsal_torch.evaluation.bootstrap import mean_interval
from rehearsal_torch.evaluation.claim_rows import Row, number
from rehearsal_torch.run_folder import RunFolder
from reproduction.campaigns.jobs import LOG, NUMBERS, layouts, rows_of
from reproduction.page import Block, Section, caution, distinct, minutes, origin, table
from reproduction.plan import study, texts
from reproduction.run import Options, Paper

STUDY, TEXTS = study("campaigns"), texts("campaigns")
# A regret that counts as the optimum, and the world that has a constraint.
NEAR, LIMITED = 0.02, "limited"


def parts(out: RunFolder, options: Options) -> Iterator[Block | Section]:
    """The parts of the page, from its rows."""
    record = PAPER.record(out.path, options, "sets")
    lines = list(record.lines.values())
    rows: list[Row] = [{**row, **{key: number(row[key]) for key in NUMBERS}} for row in record.rows("sets")]
    yield f"# {STUDY['title']}"
    yield f"{origin('campaigns', lines, 'campaign')}; {minutes(lines)}."
    yield from (caution(lines, "campaigns"), TEXTS["worlds"], TEXTS["columns"])
    for world in STUDY["worlds"]:
        yield _section(world, [row for row in rows if row["world"] == world])


PAPER = Paper("campaigns", layouts, LOG, rows_of, parts)


def _section(world: str, rows: Sequence[Row]) -> Section:
    """The rows of a world: one line for each number of experiments; nothing without rows."""
    if not rows:
        return Section()
    body = []
    for trials in sorted(distinct([row["trials"] for row in rows])):
        some = [row for row in rows if row["trials"] == trials]
        regrets = [100 * row["regret"] for row in some]
        mean = mean_interval(regrets)
        ends = f" [{mean.low:.2f}, {mean.high:.2f}]" if mean.low == mean.low else ""
        held, claims = (sum(row[name] for row in some) for name in ("held", "claims"))
        cells = {
            "experiments": f"{trials:g}",
            "campaigns": str(len(some)),
            "regret, %": f"{mean.mean:.2f}{ends}",
            "worst, %": f"{max(regrets):.2f}",
            f"within {100 * NEAR:g} %": f"{sum(row['regret'] <= NEAR for row in some)} of {len(some)}",
            "intervals hold": f"{held:g} of {claims:g}",
        }
        if world == LIMITED:
            cells["allowed in truth"] = f"{sum(row['allowed'] for row in some):g} of {len(some)}"
        body.append(cells)
    return Section([f"## {TEXTS[f'title_{world}']}", table(body)])
