"""Seeded changes of what people, programs and disks hand over: plain data, tables and bytes.

Everything is drawn from a `random.Random` that the family and the number of an input decide, so that each
input can be made again alone.
"""

import gzip
import json
import math
import os
import random
import zlib

from tests.toys.mutated import holder_of, places

NUMBERS = [
    0,
    -0.0,
    1,
    -1,
    2,
    0.5,
    1e-320,
    1e-300,
    1e149,
    1e155,
    1e308,
    -1e308,
    10**19,
    10**400,
    math.nan,
    math.inf,
    -math.inf,
]
TEXTS = [
    "", " ", "a", "x" * 300, "nan", "inf", "-inf", "null", "true", "no", "1e3", "0,5", "1.5", "0x10",
    "1_000", "a\nb", "a\tb", "\0", "a\0b", "\ufeff",
    "\u202ea", "set:X", "Größe",
    "体温", "🙂", "../../etc/passwd", "/dev/null", "C:\\temp", "a b", "a[0]", "[a]", "{a}", "{}",
    "{a: 1}", "%s", "%(a)s", "${a}", "${oc.env:HOME}",
    "a,b", 'a"b', "a'b", "a=b", "a;b", "# a", "- a", "*a", "&a", "!!python/object:os.x", "action[0]",
    "__class__", "_target_", "self", "-", "~", "a->b",
]  # fmt: skip
# Names that a variable may bear in someone's file.
NAMES = [text for text in TEXTS if text.strip() and text.isprintable() and len(text) < 100]
OTHERS = [
    None,
    True,
    False,
    [],
    [[]],
    {},
    [None],
    {"a": None},
    [["a", "b"]],
    {"a": ["b"]},
    [1, 2],
    {"normals": [[1]], "offsets": [1]},
]
BYTES = [
    b"\0",
    b"\0" * 40,
    b"\xff",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\r\n",
    b"\n",
    b"\r",
    b'"',
    b"'",
    b",",
    b";",
    b"{",
    b"[" * 3000,
    b"&a *a",
    b"\x1f\x8b",
    b"nan",
    b"-",
]


def source(family, number):
    """Where everything random of an input comes from; FUZZ_SEED=1 and so on make other inputs than the lane's
    own."""
    return random.Random(f"{family} {number} {os.environ.get('FUZZ_SEED', '')}".rstrip())


def odd(rng):
    return rng.choice(rng.choice([NUMBERS, TEXTS, OTHERS]))


def copied(plain):
    """A copy that shares nothing, of plain data that may hold numbers JSON lacks."""
    return json.loads(json.dumps(plain))


def changed(rng, plain, times=(1, 3)):
    """A copy of plain data that is changed in a few places."""
    made = copied(plain)
    for _ in range(rng.randint(*times)):
        paths = list(places(made))
        if not paths:
            break
        holder, last = holder_of(made, rng.choice(paths))
        rng.choice(PLAIN)(rng, holder, last, paths, made)
    return made


def _replace(rng, holder, key, *_):
    holder[key] = odd(rng)


def _number(rng, holder, key, *_):
    value = holder[key]
    if isinstance(value, bool) or not isinstance(value, int | float):
        holder[key] = rng.choice(NUMBERS)
    else:
        holder[key] = rng.choice(
            [
                -value,
                value * 1e6,
                value * 1e-12,
                value + 1e9,
                str(value),
                [value],
                float(value),
                int(value) if abs(value) < 1e18 else 0,
                not value,
            ]
        )


def _text(rng, holder, key, *_):
    value = holder[key]
    if isinstance(value, str):
        holder[key] = rng.choice(
            [
                value.upper(),
                f"{value} ",
                value[1:],
                value * 40,
                f"${{{value}}}",
                f"{value}\n",
                f"{value}'",
                list(value),
                [value],
                {value: value},
            ]
        )
    else:
        holder[key] = rng.choice(TEXTS)


def _leave_out(rng, holder, key, *_):
    del holder[key]


def _double(rng, holder, key, *_):
    if isinstance(holder, list):
        holder.insert(rng.randint(0, len(holder)), copied(holder[key]))
    else:
        holder[rng.choice([f"{key}x", str(key).upper(), f"{key} "])] = copied(holder[key])


def _rename(rng, holder, key, *_):
    if isinstance(holder, dict):
        holder[rng.choice([f"{key}x", str(key)[1:], str(key).upper(), rng.choice(TEXTS)])] = holder.pop(key)
    else:
        holder.reverse()


def _swap(rng, holder, key, paths, whole):
    *above, last = rng.choice(paths)
    other = whole
    for step in above:
        if not isinstance(other, dict | list) or (isinstance(other, list) and not isinstance(step, int)):
            return
        other = other[step]
    holder[key], other[last] = copied(other[last]), copied(holder[key])


def _nest(rng, holder, key, *_):
    value = holder[key]
    for _ in range(rng.choice([1, 1, 2, 45])):
        value = rng.choice([[value], {"a": value}])
    holder[key] = value


def _unwrap(rng, holder, key, *_):
    value = holder[key]
    inside = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    holder[key] = rng.choice(inside) if inside else None


def _repeat(rng, holder, key, *_):
    value = holder[key]
    holder[key] = (
        value * rng.choice([2, 50, 3000])
        if isinstance(value, list) and len(value) < 50
        else [value] * rng.choice([2, 3, 30])
    )


def _shuffle(rng, holder, key, *_):
    value = holder[key]
    if isinstance(value, list):
        rng.shuffle(value)
    elif isinstance(value, dict):
        shuffled = list(value.values())
        rng.shuffle(shuffled)
        holder[key] = dict(zip(value, shuffled, strict=True))
    else:
        holder[key] = odd(rng)


def _another(rng, holder, key, paths, whole):
    """A name or a number of another place."""
    value = whole
    for step in rng.choice(paths):
        value = value[step]
    if not isinstance(value, dict | list) and not isinstance(holder[key], dict | list):
        holder[key] = value


def _bound(rng, holder, key, *_):
    value = holder[key]
    # A whole number may have grown beyond what a float holds.
    huge = isinstance(value, int) and abs(value) > 10**300
    if isinstance(value, int | float) and not isinstance(value, bool) and not huge:
        holder[key] = rng.choice(
            [value - 1, value + 1, value * 3, 0.0, value + 1e-9, value * 1e12, value + 1.6e9, value * 1e-9]
        )
    elif isinstance(value, list) and len(value) == 2:
        value.reverse()
    elif isinstance(value, list) and value:
        value.pop(rng.randrange(len(value)))


PLAIN = [
    _another,
    _another,
    _bound,
    _bound,
    _bound,
    _bound,
    _replace,
    _number,
    _number,
    _text,
    _leave_out,
    _leave_out,
    _double,
    _rename,
    _swap,
    _nest,
    _unwrap,
    _repeat,
    _shuffle,
    _shuffle,
]


def renamed(plain, names):
    """The same with other words for some, wherever they stand."""
    if isinstance(plain, dict):
        return {names.get(key, key): renamed(value, names) for key, value in plain.items()}
    if isinstance(plain, list):
        return [renamed(value, names) for value in plain]
    return names.get(plain, plain) if isinstance(plain, str) else plain


def damaged(rng, content, times=(1, 2)):
    """Bytes as a disk, a transfer or another program leaves them."""
    for _ in range(rng.randint(*times)):
        content = rng.choice(DAMAGES)(rng, content)
    return content


def _at(rng, content):
    return rng.randint(0, len(content))


def _cut(rng, content):
    return content[: _at(rng, content)]


def _flip(rng, content):
    made = bytearray(content)
    for _ in range(rng.choice([1, 1, 8]) if made else 0):
        made[rng.randrange(len(made))] ^= 1 << rng.randrange(8)
    return bytes(made)


def _insert(rng, content):
    place = rng.choice([0, len(content), _at(rng, content)])
    return content[:place] + rng.choice(BYTES) + content[place:]


def _blank(rng, content):
    first, last = sorted((_at(rng, content), _at(rng, content)))
    return content[:first] + b"\0" * (last - first) + content[last:]


def _take_out(rng, content):
    first = _at(rng, content)
    return content[:first] + content[first + rng.choice([1, 2, 30, 300]) :]


def _lines(rng, content):
    lines = content.splitlines(keepends=True)
    if lines:
        place, other = rng.randrange(len(lines)), rng.randrange(len(lines))
        change = rng.randrange(4)
        if change == 0:
            lines[place:place] = [lines[other]] * rng.choice([1, 2, 300])
        elif change == 1:
            del lines[place]
        elif change == 2:
            lines[place], lines[other] = lines[other], lines[place]
        else:
            lines[place] = lines[place][: rng.randint(0, len(lines[place]))]
    return b"".join(lines)


def _ends(rng, content):
    return content.replace(b"\n", rng.choice([b"\r\n", b"\r", b"\n\n", b"", b" \n", "\u2028".encode()]))


def _encoding(rng, content):
    return content.decode("utf-8", "replace").encode(
        rng.choice(["utf-16", "utf-16-le", "utf-8-sig", "utf-32", "latin-1", "cp1252"]), "replace"
    )


def _word(rng, content):
    """A word or number in it becomes another one."""
    words = content.split()
    if not words:
        return content
    told = rng.choice([str(odd(rng)).encode("utf-8", "replace"), rng.choice(BYTES), rng.choice(words)])
    return content.replace(rng.choice(words), told, rng.choice([1, 1, -1]))


def _pack(rng, content):
    return rng.choice(
        [
            gzip.compress(content, mtime=0),
            zlib.compress(content),
            content * 2,
            content[::-1],
            b"",
            content + content[: len(content) // 2],
        ]
    )


DAMAGES = [
    _cut,
    _flip,
    _insert,
    _insert,
    _blank,
    _take_out,
    _lines,
    _lines,
    _ends,
    _encoding,
    _word,
    _word,
    _pack,
]


def rows_changed(rng, rows):
    """A table, a list of lists of texts with the header first, that is changed in a few places; it stays a
    table, more or less."""
    rows = [list(row) for row in rows]
    for _ in range(rng.randint(1, 3)):
        row, column = rng.randrange(len(rows)), rng.randrange(max(len(rows[0]), 1))
        change = rng.choice(ROWS)
        change(rng, rows, row, column)
        rows = rows or [[""]]
        rows[0] = rows[0] or [""]
    return rows


def _cell(rng, rows, row, column):
    _set(rows[row], column, str(odd(rng)))


def _wild(rng, rows, row, column):
    _set(
        rows[row],
        column,
        rng.choice(
            [
                "1e7",
                "-1e15",
                "1e149",
                "-1e149",
                "1e155",
                "1e-320",
                "0",
                "-0.0",
                " 3 ",
                "+7",
                "1e308",
                "12345678901234567890",
                "0.1",
            ]
        ),
    )


def _set(cells, column, text):
    if column < len(cells):
        cells[column] = text


def _column(rng, rows, row, column):
    told = rng.choice(["1", "", "nan", "1e155", "1e308", "0", "-0.0", "hot", "1e-320", "inf", "2020-01-01"])
    for cells in rows[1:]:
        _set(cells, column, told)


def _scaled(rng, rows, row, column):
    factor, offset = (
        rng.choice([1e-300, 1e-12, 1e12, 1e148, -1.0, 1.0, 0.0]),
        rng.choice([0.0, 0.0, 1e7, 1.6e9, -1e15, 1e149]),
    )
    for cells in rows[1:]:
        try:
            _set(cells, column, repr(float(cells[column]) * factor + offset))
        except (ValueError, IndexError):
            continue


def _copied_column(rng, rows, row, column):
    other = rng.randrange(len(rows[0]))
    for cells in rows[1:]:
        if other < len(cells):
            _set(cells, column, cells[other])


def _no_column(rng, rows, row, column):
    for cells in rows:
        del cells[column : column + 1]


def _more_columns(rng, rows, row, column):
    for cells in rows:
        cells.insert(column, cells[column] if column < len(cells) else "")


def _header(rng, rows, row, column):
    _set(
        rows[0],
        column,
        rng.choice([rng.choice(TEXTS), rng.choice(rows[0]), f" {rows[0][column]} ", rows[0][column].lower()]),
    )


def _fewer(rng, rows, row, column):
    del rows[rng.choice([0, 1, 2, 5, 11, len(rows) // 2]) :]


def _more(rng, rows, row, column):
    rows += rows[1:] * rng.choice([1, 3])


def _same(rng, rows, row, column):
    rows[1:] = [list(rows[-1]) for _ in rows[1:]]


def _ragged(rng, rows, row, column):
    rng.choice(
        [
            rows[row].pop if rows[row] else rows.reverse,
            lambda: rows[row].append("7"),
            lambda: rows.insert(row, []),
            rows[row].reverse,
        ]
    )()


def _decimal(rng, rows, row, column):
    for cells in rows[1:]:
        cells[:] = [f'"{cell.replace(".", ",")}"' for cell in cells]


def _rounded(rng, rows, row, column):
    for cells in rows[1:]:
        try:
            _set(cells, column, str(round(float(cells[column]))))
        except (ValueError, IndexError, OverflowError):
            continue


ROWS = [
    _wild,
    _wild,
    _scaled,
    _cell,
    _column,
    _scaled,
    _scaled,
    _copied_column,
    _no_column,
    _more_columns,
    _header,
    _header,
    _fewer,
    _more,
    _same,
    _ragged,
    _decimal,
    _rounded,
]


def text_of(rows, separator=","):
    return "\n".join(separator.join(row) for row in rows) + "\n"
