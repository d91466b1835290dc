"""Key expressions: which are valid, their canonical form, when two meet and when one covers another.

A key expression is text in chunks separated by ``/``. ``*`` stands for one chunk, ``**`` for any number
of them, ``$*`` for any run of characters within a chunk. A chunk that begins with ``@`` is verbatim:
nothing but the identical chunk matches it. A key that has no wildcard is a key expression as well.

``intersects`` and ``includes`` expect canonical expressions. They never raise, so that keys read from
damaged traffic can be asked about too, and their time grows with the product of the numbers of chunks
at worst: no pattern is exponential.
"""

from __future__ import annotations

from collections.abc import Callable

ONE = "*"
MANY = "**"
RUN = "$*"
VERBATIM = "@"


def is_valid(text: str) -> bool:
    """True when ``text`` is a key expression in canonical form, the only form allowed on the wire."""
    try:
        return canonize(text) == text
    except ValueError:
        return False


def canonize(text: str) -> str:
    """The canonical form of a key expression; a ValueError says what is wrong with one that has none."""
    if not text:
        raise ValueError("a key expression cannot be empty")
    if not any(sign in text for sign in "*$#?"):
        if text[0] == "/" or text[-1] == "/" or "//" in text:
            raise ValueError(_empty_chunk(text))
        return text
    chunks: list[str] = []
    for chunk in text.split("/"):
        if not chunk:
            raise ValueError(_empty_chunk(text))
        chunk = _canonical_chunk(chunk, text)
        if chunk == MANY and chunks and chunks[-1] == MANY:
            continue
        if chunk == ONE and chunks and chunks[-1] == MANY:  # the one chunk goes first
            chunks.insert(-1, chunk)
            continue
        chunks.append(chunk)
    return "/".join(chunks)


def intersects(a: str, b: str) -> bool:
    """True when at least one key matches both expressions."""
    if a == b:
        return True
    one, other = a.split("/"), b.split("/")
    start = 0
    shorter = min(len(one), len(other))
    while start < shorter and one[start] != MANY and other[start] != MANY:
        if not _chunks_meet(one[start], other[start]):
            return False
        start += 1
    one, other = one[start:], other[start:]
    while one and other and one[-1] != MANY and other[-1] != MANY:
        if not _chunks_meet(one.pop(), other.pop()):
            return False
    return _lists_meet(one, other)


def includes(a: str, b: str) -> bool:
    """True when every key that matches ``b`` also matches ``a``.

    Decided as the nodes do: only ``**`` covers a ``**``, so ``*/**`` is not found to cover ``**/a``.
    """
    if a == b:
        return True
    outer, inner = a.split("/"), b.split("/")
    start = 0
    while start < len(outer) and outer[start] != MANY:
        if start == len(inner) or inner[start] == MANY or not _chunk_covers(outer[start], inner[start]):
            return False
        start += 1
    return _list_covers(outer[start:], inner[start:])


# --- canonical form -----------------------------------------------------------------------------


def _empty_chunk(text: str) -> str:
    where = "begins with" if text[0] == "/" else "ends with" if text[-1] == "/" else "has two"
    slashes = "'/' next to each other" if where == "has two" else "'/'"
    return f"key expression {text!r} {where} {slashes}: chunks cannot be empty"


def _canonical_chunk(chunk: str, text: str) -> str:
    for sign in "#?":
        if sign in chunk:
            raise ValueError(f"key expression {text!r} contains {sign!r}")
    if chunk in (ONE, MANY):
        return chunk
    pieces = chunk.split(RUN)
    for piece in pieces:
        if "$" in piece:
            raise ValueError(f"key expression {text!r} has a '$' that is not followed by '*'")
        if "*" in piece:
            raise ValueError(f"key expression {text!r} has a '*' that is neither a chunk of its own nor part of '$*'")
    if len(pieces) == 1:
        return chunk
    first, *middle, last = pieces
    joined = RUN.join([first, *filter(None, middle), last])
    return ONE if joined == RUN else joined


# --- chunks -------------------------------------------------------------------------------------


def _chunks_meet(x: str, y: str) -> bool:
    """True when a chunk exists that matches both; neither is ``**``."""
    if x == y:
        return True
    if x.startswith(VERBATIM) or y.startswith(VERBATIM):
        return False
    if x == ONE or y == ONE:
        return True
    if RUN not in y:
        return RUN in x and _glob(x, y)
    if RUN not in x:
        return _glob(y, x)
    # With a run on both sides everything between the ends can be put one after the other.
    x_first, y_first = x.partition(RUN)[0], y.partition(RUN)[0]
    x_last, y_last = x.rpartition(RUN)[2], y.rpartition(RUN)[2]
    heads = x_first.startswith(y_first) or y_first.startswith(x_first)
    return heads and (x_last.endswith(y_last) or y_last.endswith(x_last))


def _chunk_covers(outer: str, inner: str) -> bool:
    """True when ``outer`` matches all that ``inner`` matches; neither is ``**``."""
    if outer == inner:
        return True
    if outer.startswith(VERBATIM) or inner.startswith(VERBATIM):
        return False
    # The signs of a run in ``inner`` can stay in its text: no literal piece of ``outer`` contains them.
    return outer == ONE or (RUN in outer and _glob(outer, inner))


def _glob(pattern: str, text: str) -> bool:
    """True when the pieces between the runs of ``pattern`` are found in ``text`` in their order."""
    first, *middle, last = pattern.split(RUN)
    if not text.startswith(first) or not text.endswith(last):
        return False
    pos, end = len(first), len(text) - len(last)
    for piece in middle:
        pos = text.find(piece, pos, end)
        if pos < 0:
            return False
        pos += len(piece)
    return pos <= end


# --- lists of chunks ----------------------------------------------------------------------------


def _verbatim(chunk: str) -> bool:
    return chunk.startswith(VERBATIM)


def _remembered(test: Callable[[str, str], bool]) -> Callable[[str, str], bool]:
    """The test with its answers kept for as long as one question lasts: patterns repeat their chunks."""
    known: dict[tuple[str, str], bool] = {}

    def ask(x: str, y: str) -> bool:
        answer = known.get((x, y))
        if answer is None:
            answer = known[x, y] = test(x, y)
        return answer

    return ask


def _lists_meet(a: list[str], b: list[str]) -> bool:
    """Intersection; row ``i`` of the table says for each ``j`` whether ``a[i:]`` and ``b[j:]`` meet."""
    if a == [MANY]:
        return not any(map(_verbatim, b))
    if b == [MANY]:
        return not any(map(_verbatim, a))
    meet = _remembered(_chunks_meet)
    width = len(b)
    below = [False] * width + [True]
    for j in range(width - 1, -1, -1):
        below[j] = b[j] == MANY and below[j + 1]
    for chunk in reversed(a):
        row = [False] * (width + 1)
        row[width] = chunk == MANY and below[width]
        for j in range(width - 1, -1, -1):
            if chunk == MANY:
                row[j] = below[j] or (row[j + 1] and not _verbatim(b[j]))
            elif b[j] == MANY:
                row[j] = row[j + 1] or (below[j] and not _verbatim(chunk))
            else:
                row[j] = below[j + 1] and meet(chunk, b[j])
        if not any(row):
            return False
        below = row
    return below[0]


def _list_covers(a: list[str], b: list[str]) -> bool:
    """Inclusion; row ``i`` of the table says for each ``j`` whether ``a[i:]`` covers ``b[j:]``."""
    if a == [MANY]:
        return not any(map(_verbatim, b))
    cover = _remembered(_chunk_covers)
    width = len(b)
    below = [False] * width + [True]
    for chunk in reversed(a):
        row = [False] * (width + 1)
        if chunk == MANY:
            row[width] = below[width]
            for j in range(width - 1, -1, -1):
                row[j] = below[j] or (row[j + 1] and not _verbatim(b[j]))
        else:
            for j in range(width):
                row[j] = below[j + 1] and b[j] != MANY and cover(chunk, b[j])
        if not any(row):
            return False
        below = row
    return below[0]
