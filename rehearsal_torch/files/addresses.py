"""Addresses in messages, without their password.

Somebody may write the address of a data base, scheme://user:password@host, where a file or a name belongs.
Messages repeat what was written, and messages are kept in logs and sent to others. What stands between the
user's name and the host is therefore replaced, in every error of this package (`InputError`; `UserError` of
the commands). A password may hold any sign but a line break; one that begins with a blank is taken for prose.

Source: RFC 3986, 3.2.1 (user information).
"""

import re

# Of a scheme, two letters at least (C:/ is a disk); a path keeps one of its two slashes.
_USER = re.compile(r"(?<![\w+.-])[\w+.-]{2,}:/{1,3}[^\s/:@]*:(?!\s)")
# The rest of a word that was cut off, as long values are in messages, and with it perhaps the @.
_CUT, _WORD = re.compile(r"\S*?(?=\s?(?:\.\.\.|…))"), re.compile(r"\S*")


def without_password(text: str) -> str:
    """A message in which each address has *** in place of its password."""
    return "\n".join(map(_line, text.split("\n"))) if ":/" in text else text


def _line(line: str) -> str:
    """One line, in time that grows with its length: no part is looked at twice."""
    told, place, end = "", 0, line.rfind("@")
    while found := _USER.search(line, place):
        told, begin = told + line[place : found.end()], found.end()
        if begin <= end:
            return f"{told}***{line[end:]}"
        cut, word = _CUT.match(line, begin), _WORD.match(line, begin)
        assert word is not None
        told, place = (f"{told}***", cut.end()) if cut else (told + word[0], word.end())
    return told + line[place:]


class InputError(ValueError):
    """What was given cannot be used. Its message repeats no password of an address."""

    def __str__(self) -> str:
        return without_password(super().__str__())
