"""All warnings of a run: those of its data, of its decisions, of its checkpoint, and of how it ended."""

from rehearsal_torch.data.finding import texts_of
from rehearsal_torch.evaluation.recorded_run import Decided
from rehearsal_torch.reporting import untouched_score
from rehearsal_torch.reporting.page.markup import Markup, bullets, grouped, joined, name_of, tag
from rehearsal_torch.reporting.page.material import Material, counted, listed

_UNKNOWN = "The run left no status: it was killed, or has not ended yet; the page shows what there was."


def cautions(of: Material) -> Markup:
    """The section's content; says so where nothing was recorded."""
    general, of_cases = of_the_run(of), of_decisions(of.decisions)
    if not general and not of_cases:
        return tag("p", "The run recorded no warnings.")
    return joined(
        [
            bullets(general),
            tag("h3", "Warnings of decisions") if of_cases else None,
            grouped(of_cases, len(of.run.decisions), *of.nouns),
        ]
    )


def of_the_run(of: Material) -> list[str]:
    """How the run ended, if not well; the cautions of its data card; what is known of its checkpoint."""
    warnings = []
    if not of.ended and of.status.get("state") != "ok":
        state, message = of.status.get("state"), of.status.get("message", "")
        warnings.append(f"The run did not end well ({state}): {message}" if state else _UNKNOWN)
    warnings += [str(of.card["caution"])] if "caution" in of.card else []
    warnings += texts_of(of.card)
    warnings += [str(text) for text in listed(of.record.get("training_faults"))]
    if of.run.config.get("checkpoint") and of.run.held_out_seen:
        warnings.append(f"{untouched_score.SEEN}.")
    return warnings


def of_decisions(decisions: list[Decided]) -> list[tuple[str, str]]:
    """The name of a case and a warning, for every warning of every decision."""
    return [(name_of(decision), text) for decision in decisions for text in texts_of(decision)]


def notice(of: Material) -> Markup | None:
    """What stands at the top of the page: how many warnings there are, and that a run did not end well."""
    general, of_cases = of_the_run(of), of_decisions(of.run.decisions)
    if not general and not of_cases:
        return None
    warned = len({name for name, _ in of_cases})
    cases = f"{counted(warned, 'case')} of {len(of.run.decisions)} with warnings" if of_cases else ""
    data = f"{counted(len(general), 'warning')} of the run and its data" if general else ""
    words = f"{' and '.join(text for text in (data, cases) if text)}: "
    link = tag("a", "read them before acting", href="#warnings")
    return tag("div", tag("p", joined([words, link, "."])), class_="notice")
