"""Results that are kept in git come from clean commits."""

from pathlib import Path

from rehearsal_torch.files.package_paths import RESULTS, changed_files, checkout
from rehearsal_torch.user_error import UserError


def check_clean(out: Path) -> None:
    """Refuses to write into ``docs/results`` from a checkout with uncommitted changes.

    Args:
        out: The folder of the results; outside of ``docs/results`` everything is allowed.

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
