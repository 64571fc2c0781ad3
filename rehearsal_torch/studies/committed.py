"""Results that are kept in git: compressed rows, computed from clean commits only.

While a study runs, its rows are plain CSV files, appended line by line. When it ends, files of more than
100 kB are compressed (``rows.csv`` becomes ``rows.csv.gz``; equal rows give equal bytes); the next command
unpacks them first. Results in ``docs/results`` must come from a commit: a checkout with uncommitted changes
outside of that folder is refused.
"""

import gzip
from pathlib import Path

from rehearsal_torch.cli.errors import UserError
from rehearsal_torch.cli.installation import checkout
from rehearsal_torch.cli.job import RESULTS, changed_files
from rehearsal_torch.files.plain import PlainFileError
from rehearsal_torch.files.rows import BYTES
from rehearsal_torch.files.writing import write_bytes

# Files with more bytes are compressed.
LARGE = 100_000
# Suffix of a commit whose checkout had uncommitted changes.
CHANGES = "+changes"


def pack(folder: Path) -> list[str]:
    """Compresses the large CSV files of a study's folder and its subfolders.

    Args:
        folder: The study's folder.

    Returns:
        The names of the compressed files.
    """
    packed = []
    for path in sorted(folder.rglob("*.csv")):
        if path.stat().st_size > LARGE:
            write_bytes(path.with_name(f"{path.name}.gz"), gzip.compress(path.read_bytes(), mtime=0))
            path.unlink()
            packed.append(path.name)
    return packed


def unpack(folder: Path) -> None:
    """Unpacks the compressed CSV files; an existing plain file is newer and stays.

    Args:
        folder: The study's folder.

    Raises:
        PlainFileError: if a file is damaged, or larger than 1 GiB unpacked.
    """
    for path in sorted(folder.rglob("*.csv.gz")):
        plain = path.with_suffix("")
        if not plain.exists():
            try:
                with gzip.open(path) as stream:
                    content = stream.read(BYTES + 1)
            except (OSError, EOFError) as error:
                remedy = "restore the file from a copy, or move it away and create it again"
                raise PlainFileError(f"{path}: expected compressed rows; {error}: {remedy}") from error
            if len(content) > BYTES:
                raise PlainFileError(f"{path}: expected at most {BYTES:,} bytes of rows; got more")
            write_bytes(plain, content)
        path.unlink()


def check_clean(out: Path) -> None:
    """Refuses to write committed results from a checkout with uncommitted changes.

    Args:
        out: The study's folder; outside of ``docs/results`` everything is allowed.

    Raises:
        UserError: if tracked files of the checkout differ from the commit.
    """
    root = checkout()
    if root is None or not out.resolve().is_relative_to((root / RESULTS).resolve()):
        return
    changed = changed_files(root, RESULTS)
    if changed:
        raise UserError(
            f"results are kept from clean commits only; {', '.join(changed[:3])} "
            f"{'differs' if len(changed) == 1 else 'differ'} from the commit",
            f"out={out}",
            "Commit first, or choose another out=",
        )
