"""README.md and the figures of the study of structural rehearsal models, from its rows.

Source: Qin et al. (2023), Fig. 2 and 4 and Tab. 1 (layout).
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median

from rehearsal_torch.evaluation.bootstrap import mean_interval
from rehearsal_torch.evaluation.claim_rows import ONLINE_NUMBERS, TRUTH, Row, by_run, number
from rehearsal_torch.evaluation.method_summaries import LAST, OnlineSummary, grouped, mean, online_summary
from rehearsal_torch.reporting.alteration_report import figure, percent
from rehearsal_torch.reporting.figures import round_figures
from rehearsal_torch.run_folder import RunFolder
from reproduction.online.jobs import AGENTS, BOUNDS, LOG, ROUNDS, layouts, rows_of
from reproduction.online.truth import truth
from reproduction.page import Block, Section, caution, distinct, minutes, ordered, origin, table
from reproduction.plan import entry, published_value, study, texts
from reproduction.record import Record
from reproduction.run import Options, Paper

STUDY, TEXTS = study("online"), texts("online")
# The paper's method, its variant with the paper's settings, and the one that only maximises the probability.
DEFAULT, PUBLISHED, SUCCESS = "qwz23", "qwz23_published", "qwz23_success"
COUNTERPARTS = [name for name in STUDY["methods"] if "counterpart" in entry(STUDY, "methods", name)]
# The world whose structural equations change during a run.
CHANGING = "two_stores"
# The paper's tau, and one that no alteration reaches.
TAU, HIGH_TAU = str(published_value("online", "tau")), "0.9"


def online_typed(rows: Iterable[Mapping[str, str]]) -> list[Row]:
    """Rows read from CSV, with texts converted to numbers."""
    return [
        {
            **line,
            "repeat": int(line["repeat"]),
            "round": int(line["round"]),
            **{
                key: number(line[key])
                for key in (*ONLINE_NUMBERS, *TRUTH)
                if key in line or key in ONLINE_NUMBERS
            },
        }
        for line in rows
    ]


def parts(out: RunFolder, options: Options) -> Iterator[Block | Section]:
    """The parts of the page, from its rows."""
    record = PAPER.record(out.path, options, ROUNDS)
    rows = _by_world(online_typed(record.rows(ROUNDS)))
    lines = list(record.lines.values())
    yield f"# {STUDY['title']}"
    yield caution(lines, "repeats")
    yield TEXTS["made"].format(
        origin=f"{origin('online', lines, 'repeat')}; {minutes(lines)}.",
        rounds=options["rounds"],
        scenarios=options["scenarios"],
    )
    yield TEXTS["methods"]
    yield targets(rows)
    yield table1(rows, _agent_rows(out.path, int(STUDY["facts"]["rounds"])))
    for count in _other_numbers_of_rounds(out.path):
        yield longer(_agent_rows(out.path, count), count)
    yield fig4(rows)
    yield truth(_by_world(online_typed(record.rows(BOUNDS))))
    for section in (policies, counterparts, changing):
        yield section(rows)
    yield _speed(record)
    yield _missing_repeats(record)


PAPER = Paper("online", layouts, LOG, rows_of, parts, unlogged=frozenset({AGENTS}))


def targets(rows: Sequence[Row]) -> list[str]:
    """One item per world and claim of the paper: the probability reached.

    Args:
        rows: The rows of the rehearsal methods.
    """
    items = []
    for world in distinct([row["world"] for row in rows if row["world"] != CHANGING]):
        for method, tau in ((DEFAULT, TAU), (SUCCESS, ""), (DEFAULT, HIGH_TAU), (PUBLISHED, HIGH_TAU)):
            some = [row for row in rows if (row["world"], row["method"], row["tau"]) == (world, method, tau)]
            if some:
                one = online_summary(some)
                repeats = f"{one.repeats} repeat{'s' if one.repeats > 1 else ''}"
                items.append(f"- {world}: {_target(one, method, tau)}; {repeats}.")
    return items


def table1(rows: Sequence[Row], agent_rows: Sequence[Row]) -> Section:
    """Table 1: mean probability of success at tau = .7, and that of reinforcement learning agents.

    Args:
        rows: The rows of the rehearsal methods.
        agent_rows: The rows of the agents, over the same number of rounds.
    """
    some = [row for row in rows if row["tau"] in ("", TAU) and row["world"] != CHANGING]
    body = []
    for (world, method), each in grouped(_by_world([*some, *agent_rows]), "world", "method").items():
        one = online_summary(each)
        in_paper = published_value("online", "table1", str(world).removesuffix("_released"), str(method))
        body.append(_table1_row(str(world), str(method), one, f"last {LAST} rounds", in_paper))
    if not body:
        return Section()
    return Section(["## Table 1: average probability of success, tau = 0.7", table(body)])


def longer(agent_rows: Sequence[Row], rounds: int) -> Section:
    """The same table for agents over another number of rounds.

    Args:
        rounds: Number of rounds of a repeat.
    """
    body = []
    for (world, method), each in grouped(_by_world(agent_rows), "world", "method").items():
        one = online_summary(each, max(rounds // 10, 1))
        in_paper = published_value("online", "long", str(world), str(method))
        body.append(_table1_row(str(world), str(method), one, "last tenth", in_paper))
    return Section([f"### After {rounds} rounds", table(body)]) if body else Section()


def fig4(rows: Sequence[Row]) -> Section:
    """Fig. 4: rounds of the default at each tau, with its information and its bounds.

    Args:
        rows: The rows of the rehearsal methods.
    """
    worlds: dict[str, dict[str, Sequence[Row]]] = {}
    body, late = [], f"last {LAST} rounds"
    some = sorted((row for row in rows if row["method"] == DEFAULT), key=lambda row: float(row["tau"]))
    for (world, tau), each in grouped(_by_world(some), "world", "tau").items():
        one = online_summary(each)
        worlds.setdefault(str(world), {})[f"tau = {tau}"] = each
        body.append(
            {
                "world": str(world),
                "tau": str(tau),
                **_probabilities(one, late),
                "information": f"{one.information:.3f}",
                f"information, {late}": f"{one.information_late:.3f}",
                "width of the bounds": f"{one.width:.3f}",
                "coverage": percent(one.covered),
                f"coverage, {late}": percent(one.covered_late),
                "altered": _altered(one),
                "repeats": str(one.repeats),
            }
        )
    if not worlds:
        return Section()
    drawn = round_figures.draw_online(worlds, dict.fromkeys(worlds, f"tau = {TAU}"))
    return Section(["## Fig. 4: rounds at each tau", TEXTS["fig4"], table(body)], {"fig4": drawn})


def policies(rows: Sequence[Row]) -> Section:
    """Methods that select alterations differently, at the paper's tau.

    Args:
        rows: The rows of the rehearsal methods.
    """
    others = (*COUNTERPARTS, "none", "forgetting")
    some = [
        row
        for row in rows
        if row["tau"] in ("", TAU) and row["method"] not in others and row["world"] != CHANGING
    ]
    return _comparison(some, "## Policies at tau = 0.7", "policies")


def counterparts(rows: Sequence[Row]) -> Section:
    """The default beside methods without bi-directional edges and without a graph, over the same repeats.

    Args:
        rows: The rows of the rehearsal methods.
    """
    repeats = {(row["world"], row["repeat"]) for row in rows if row["method"] in COUNTERPARTS}
    some = [
        row
        for row in rows
        if row["tau"] in ("", TAU)
        and row["method"] in (DEFAULT, *COUNTERPARTS, "none")
        and (row["world"], row["repeat"]) in repeats
    ]
    section = _comparison(
        some, "## Without bi-directional edges, and without a graph", "counterparts", TEXTS["counterparts"]
    )
    if not section.blocks:
        return section
    heading, text, body = section.blocks
    return Section([heading, text, differences(some), body], section.figures)


def differences(rows: Sequence[Row]) -> list[str]:
    """One item per world and counterpart: by how much the default is more probable to succeed, with the 95 %
    interval over the repeats that both have, and a note where that interval contains 0.

    Args:
        rows: The rows of the default and of its counterparts.
    """
    means = {
        key: {
            repeat: mean([row["p_true"] for row in some]) for repeat, some in by_run(each, "repeat").items()
        }
        for key, each in grouped(_by_world(rows), "world", "method").items()
    }
    items = []
    for (world, method), theirs in means.items():
        ours = means.get((world, DEFAULT), {})
        shared = sorted(set(ours) & set(theirs))
        if method in COUNTERPARTS and shared:
            found = mean_interval([ours[repeat] - theirs[repeat] for repeat in shared])
            ends = "" if math.isnan(found.low) else f" [{found.low:+.3f}, {found.high:+.3f}]"
            count = f"{len(shared)} repeat{'s' if len(shared) > 1 else ''}"
            note = "; no difference is shown" if found.low <= 0 <= found.high else ""
            items.append(f"- {world}: `{DEFAULT}` minus `{method}` {found.mean:+.3f}{ends}, {count}{note}.")
    return items


def changing(rows: Sequence[Row]) -> Section:
    """A world that changes after half of the rounds, with and without forgetting.

    Args:
        rows: The rows of the rehearsal methods.
    """
    some = [row for row in rows if row["world"] == CHANGING and row["tau"] == ""]
    if not some:
        return Section()
    half = max(row["round"] for row in some) // 2
    by_method = {str(method): each for (method,), each in grouped(some, "method").items()}
    body = []
    for method, each in by_method.items():
        one = online_summary(each)
        halves = [[row for row in each if (row["round"] <= half) == first] for first in (True, False)]
        before, after = (_mean_and_std(online_summary(part)) if all(halves) else "-" for part in halves)
        body.append(
            {
                "method": f"`{method}`",
                "before the change": before,
                "after the change": after,
                f"last {LAST} rounds": figure(one.late),
                "best possible then": figure(one.late + one.left),
                "repeats": str(one.repeats),
            }
        )
    return Section(
        ["## A world that changes (Fig. 2d)", TEXTS["changing"], table(body)],
        {"changing": round_figures.draw_online({CHANGING: by_method})},
    )


def _agent_rows(folder: Path, rounds: int) -> list[Row]:
    return online_typed(PAPER.record(folder, {"rounds": rounds}, AGENTS).rows(AGENTS))


def _other_numbers_of_rounds(folder: Path) -> list[int]:
    """The numbers of rounds for which agents have a file of their own, in rising order."""
    found = (re.fullmatch(r"rl_(\d+)\.csv", path.name) for path in folder.glob("rl_*.csv"))
    return sorted(int(match[1]) for match in found if match)


def _by_world(rows: Sequence[Row]) -> list[Row]:
    """Rows in the study's order of worlds; within a world the order stays."""
    return ordered(rows, (lambda row: str(row["world"]), list(STUDY["worlds"])))


def _target(one: OnlineSummary, method: str, tau: str) -> str:
    """What a method reached at some tau, as a clause."""
    mean = one.probability.mean
    if tau == HIGH_TAU:
        instead = TEXTS["instead" if method == DEFAULT else "instead_published"]
        return TEXTS["out_of_reach"].format(oracle=one.oracle, instead=instead, method=method, mean=mean)
    if method == DEFAULT:
        least = "at least" if mean >= 0.7 else "below"
        share = one.targets.get("recommend")
        end = "" if share is None else TEXTS["recommended"].format(share=percent(share))
        return TEXTS["reached"].format(mean=mean, least=least, oracle=one.oracle) + end
    reached = "within" if one.left <= 0.02 else "not within"
    return TEXTS["success"].format(late=one.late, last=LAST, left=one.left, reached=reached)


def _comparison(rows: Sequence[Row], heading: str, name: str, text: str = "") -> Section:
    """Methods by world, as a table and as a figure; no section for a single method."""
    if len({row["method"] for row in rows}) < 2:
        return Section()
    body, worlds = [], dict[str, dict[str, Sequence[Row]]]()
    for (world, method), some in grouped(_by_world(rows), "world", "method").items():
        one = online_summary(some)
        worlds.setdefault(str(world), {})[str(method)] = some
        body.append(
            {
                "world": str(world),
                "method": f"`{method}`",
                **_probabilities(one, f"last {LAST} rounds"),
                "no action": percent(one.targets.get("-", 0.0)),
                "altered": _altered(one),
                "seconds per round": f"{one.seconds:.2g}",
                "repeats": str(one.repeats),
            }
        )
    return Section([heading, text, table(body)], {name: round_figures.draw_online(worlds)})


def _table1_row(
    world: str, method: str, one: OnlineSummary, late: str, in_paper: float | None
) -> dict[str, str]:
    return {
        "world": world,
        "method": f"`{method}`",
        **_probabilities(one, late),
        "paper": figure(in_paper),
        "repeats": str(one.repeats),
    }


def _probabilities(one: OnlineSummary, late: str) -> dict[str, str]:
    """The probability of success, overall and over the last rounds, whose heading is `late`."""
    return {
        "probability": _mean_and_std(one),
        "successes": f"{one.successes:.1f}",
        late: figure(one.late),
        "best possible": figure(one.oracle),
    }


def _mean_and_std(one: OnlineSummary) -> str:
    return figure(one.probability.mean) + ("" if math.isnan(one.std) else f" ± {one.std:.3f}")


def _altered(one: OnlineSummary) -> str:
    """The three variables that are altered most often."""
    shares = [(name, share) for name, share in one.targets.items() if name != "-"]
    return ", ".join(f"{name} {100 * share:.1f}%" for name, share in shares[:3]) or "-"


def _speed(record: Record) -> Section:
    """Median processor seconds of a repeat of the default, and the minutes of 20 repeats on two cores."""
    if not record.lines:
        return Section()
    found: dict[str, list[float]] = {}
    for (world, method, _, _), line in record.lines.items():
        if method == DEFAULT:
            found.setdefault(world, []).append(float(line["seconds"]))
    repeats = "; ".join(
        f"{world}: {median(seconds):.0f} s per repeat, {median(seconds) / 6:.1f} minutes"
        for world, seconds in found.items()
    )
    return Section(["## Speed", TEXTS["speed"].format(repeats=repeats or "none was run")])


def _missing_repeats(record: Record) -> Section:
    """The combinations that have fewer repeats than the paper."""
    counts = Counter((key[0], key[1], key[2]) for key in record.lines)
    if not counts:
        return Section([TEXTS["no_rows"]])
    fewer = [
        f"{world} {method}{f' tau={tau}' if tau else ''}: {count}"
        for (world, method, tau), count in counts.items()
        if count < STUDY["facts"]["repeats"]
    ]
    if not fewer:
        return Section([TEXTS["complete"]])
    return Section(["## Missing repeats", TEXTS["missing"].format(fewer="; ".join(fewer))])
