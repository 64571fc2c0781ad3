"""Where the page comes from: command, commit, versions, seed, choices, and the whole configuration."""

import yaml

from rehearsal_torch.reporting.page.markup import Child, Markup, facts, joined, tag
from rehearsal_torch.reporting.page.material import Material, mapping, named, shown

LONGEST = 60_000


def provenance(of: Material) -> Markup:
    """The section's content: what ``run.json`` and ``config.yaml`` say."""
    return joined([facts(origin(of)), _configuration(of)])


def origin(of: Material) -> list[tuple[str, Child]]:
    """Name to value of everything that ``run.json`` says of where the run comes from."""
    record = of.record
    known: list[tuple[str, Child]] = []
    if record.get("command"):
        known.append(("command", tag("code", str(record["command"]))))
    known += [(name, tag("code", str(record[name]))) for name in ("commit",) if record.get(name)]
    if "commit" in record and not record["commit"]:
        known.append(("commit", "not known: the package was installed without its history"))
    known += [("seed", shown(record["seed"]))] if "seed" in record else []
    known += [
        (title, named(mapping(record[key])))
        for title, key in (("versions", "versions"), ("machine", "machine"))
        if mapping(record.get(key))
    ]
    if of.run.choices:
        known.append(("chosen", ", ".join(f"{group} {name}" for group, name in of.run.choices.items())))
    if record.get("data_fingerprint"):
        known.append(("fingerprint of the data", tag("code", str(record["data_fingerprint"]))))
    known.append(("run folder", tag("code", str(of.run.path))))
    return known


def _configuration(of: Material) -> Markup | None:
    if not of.run.config:
        return tag("p", "The run recorded no configuration.")
    text = yaml.safe_dump(of.run.config, sort_keys=False, allow_unicode=True)
    cut = text if len(text) <= LONGEST else f"{text[:LONGEST]}\n... (the rest is in config.yaml)"
    return tag(
        "details",
        tag("summary", "The whole configuration (config.yaml)"),
        tag("pre", cut, tabindex="0", aria_label="config.yaml"),
    )
