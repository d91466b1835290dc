"""Key expressions: every row that was checked with a real node, and what must hold for any of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scapy_zenoh.keyexpr import canonize, includes, intersects, is_valid

# text, valid as it is, canonical form (None: it has none)
FORMS: list[tuple[str, bool, str | None]] = [
    ("a", True, "a"),
    ("a/b/c", True, "a/b/c"),
    ("/a", False, None),
    ("a/", False, None),
    ("a//b", False, None),
    ("", False, None),
    ("a/**", True, "a/**"),
    ("**", True, "**"),
    ("*", True, "*"),
    ("a/*/b", True, "a/*/b"),
    ("a/**/**", False, "a/**"),
    ("a/**/*", False, "a/*/**"),
    ("a/*/**", True, "a/*/**"),
    ("**/*", False, "*/**"),
    ("ab*", False, None),
    ("a*/b", False, None),
    ("a/b$*", True, "a/b$*"),
    ("a/$*", False, "a/*"),
    ("$*", False, "*"),
    ("a$*$*b", False, "a$*b"),
    ("a$b", False, None),
    ("a$*b$*c", True, "a$*b$*c"),
    ("a?b", False, None),
    ("a#b", False, None),
    ("@a/b", True, "@a/b"),
    ("@a$*", True, "@a$*"),
    ("a/@b", True, "a/@b"),
    ("é/日本", True, "é/日本"),
    ("a b", True, "a b"),
    ("a/***", False, None),
    ("$**", False, None),
    ("*$*", False, None),
    ("$*$*", False, "*"),
    ("a/$*b", True, "a/$*b"),
]

# a, b, whether a key matches both
INTERSECTIONS = [
    ("a", "a", True),
    ("a/b", "a/b", True),
    ("*", "abc", True),
    ("*", "xxx", True),
    ("ab$*", "abcd", True),
    ("ab$*d", "abcd", True),
    ("ab$*", "ab", True),
    ("ab/*", "ab", False),
    ("a/*/c/*/e", "a/b/c/d/e", True),
    ("a/$*b/c/$*d/e", "a/xb/c/xd/e", True),
    ("a/*/c/*/e", "a/c/e", False),
    ("a/*/c/*/e", "a/b/c/d/x/e", False),
    ("ab$*cd", "abxxcxxd", False),
    ("ab$*cd", "abxxcxxcd", True),
    ("ab$*cd", "abxxcxxcdx", False),
    ("**", "abc", True),
    ("**", "a/b/c", True),
    ("ab/**", "ab", True),
    ("**/xyz", "a/b/xyz/d/e/f/xyz", True),
    ("**/xyz$*xyz", "a/b/xyz/d/e/f/xyz", False),
    ("**/xyz$*xyz", "a/b/xyzdefxyz", True),
    ("a/**/c/**/e", "a/b/b/b/c/d/d/d/e", True),
    ("a/**/c/**/e", "a/c/e", True),
    ("a/**/c/*/e/*", "a/b/b/b/c/d/d/c/d/e/f", True),
    ("a/**/c/*/e/*", "a/b/b/b/c/d/d/c/d/d/e/f", False),
    ("x/abc", "x/abc", True),
    ("x/abc", "abc", False),
    ("x/*", "x/abc", True),
    ("x/*", "abc", False),
    ("*", "x/abc", False),
    ("x/*", "x/abc$*", True),
    ("x/$*abc", "x/abc$*", True),
    ("x/a$*", "x/abc$*", True),
    ("x/a$*de", "x/abc$*de", True),
    ("x/a$*d$*e", "x/a$*e", True),
    ("x/a$*d$*e", "x/a$*c$*e", True),
    ("x/a$*d$*e", "x/ade", True),
    ("x/c$*", "x/abc$*", False),
    ("x/$*d", "x/$*e", False),
    ("@a", "@a", True),
    ("@a", "@ab", False),
    ("@a", "@a/b", False),
    ("@a", "@a/*", False),
    ("@a", "@a/*/**", False),
    ("@a", "@a$*/**", False),
    ("@a", "@a/**", True),
    ("**/xyz$*xyz", "@a/b/xyzdefxyz", False),
    ("@a/**/c/**/e", "@a/b/b/b/c/d/d/d/e", True),
    ("@a/**/c/**/e", "@a/@b/b/b/c/d/d/d/e", False),
    ("@a/**/@c/**/e", "@a/b/b/b/@c/d/d/d/e", True),
    ("@a/**/e", "@a/b/b/d/d/d/e", True),
    ("@a/**/e", "@a/b/b/b/d/d/d/e", True),
    ("@a/**/e", "@a/b/b/c/d/d/d/e", True),
    ("@a/**/e", "@a/b/b/@c/b/d/d/d/e", False),
    ("@a/*", "@a/@b", False),
    ("@a/**", "@a/@b", False),
    ("@a/**/@b", "@a/@b", True),
    ("@a/@b/**", "@a/@b", True),
    ("@a/**/@c/**/@b", "@a/**/@c/@b", True),
    ("@a/**/@c/**/@b", "@a/@c/**/@b", True),
    ("@a/**/@c/@b", "@a/@c/**/@b", True),
    ("@a/**/@b", "@a/**/@c/**/@b", False),
    ("@a", "**/@a", True),
]

# a, b, whether a matches all that b matches
INCLUSIONS = [
    ("a", "a", True),
    ("a/b", "a/b", True),
    ("*", "abc", True),
    ("*", "xxx", True),
    ("ab$*", "abcd", True),
    ("ab$*d", "abcd", True),
    ("ab$*", "ab", True),
    ("ab/*", "ab", False),
    ("a/*/c/*/e", "a/b/c/d/e", True),
    ("a/$*b/c/$*d/e", "a/xb/c/xd/e", True),
    ("a/*/c/*/e", "a/c/e", False),
    ("a/*/c/*/e", "a/b/c/d/x/e", False),
    ("ab$*cd", "abxxcxxd", False),
    ("ab$*c$*d", "abxxcxxd", True),
    ("ab$*cd", "abxxcxxcd", True),
    ("ab$*cd", "abxxcxxcdx", False),
    ("**", "abc", True),
    ("**", "a/b/c", True),
    ("ab/**", "ab", True),
    ("**/xyz", "a/b/xyz/d/e/f/xyz", True),
    ("**/xyz$*xyz", "a/b/xyz/d/e/f/xyz", False),
    ("**/xyz$*xyz", "a/b/xyzdefxyz", True),
    ("a/**/c/**/e", "a/b/b/b/c/d/d/d/e", True),
    ("a/**/c/**/e", "a/c/e", True),
    ("a/**/c/*/e/*", "a/b/b/b/c/d/d/c/d/e/f", True),
    ("a/**/c/*/e/*", "a/b/b/b/c/d/d/c/d/d/e/f", False),
    ("x/abc", "x/abc", True),
    ("x/abc", "abc", False),
    ("x/*", "x/abc", True),
    ("x/*", "abc", False),
    ("*", "x/abc", False),
    ("x/*", "x/abc$*", True),
    ("x/$*abc", "x/abc$*", False),
    ("x/a$*", "x/abc$*", True),
    ("x/abc$*", "x/a$*", False),
    ("x/a$*de", "x/abc$*de", True),
    ("x/a$*e", "x/a$*d$*e", True),
    ("x/a$*d$*e", "x/a$*e", False),
    ("x/a$*d$*e", "x/a$*c$*e", False),
    ("x/a$*d$*e", "x/ade", True),
    ("x/c$*", "x/abc$*", False),
    ("x/$*c$*", "x/abc$*", True),
    ("x/$*d", "x/$*e", False),
    ("@a", "@a", True),
    ("@a", "@ab", False),
    ("@a", "@a/b", False),
    ("@a", "@a/*", False),
    ("@a", "@a/*/**", False),
    ("@a$*/**", "@a", False),
    ("@a", "@a/**", False),
    ("@a/**", "@a", True),
    ("**/xyz$*xyz", "@a/b/xyzdefxyz", False),
    ("@a/**/c/**/e", "@a/b/b/b/c/d/d/d/e", True),
    ("@a/*", "@a/@b", False),
    ("@a/**", "@a/@b", False),
    ("@a/**/@b", "@a/@b", True),
    ("@a/@b/**", "@a/@b", True),
]


@pytest.mark.parametrize(("text", "valid", "form"), FORMS)
def test_form(text: str, valid: bool, form: str | None) -> None:
    assert is_valid(text) is valid
    if form is None:
        with pytest.raises(ValueError, match="key expression"):
            canonize(text)
    else:
        assert canonize(text) == form
        assert is_valid(form)


@pytest.mark.parametrize(("a", "b", "expected"), INTERSECTIONS)
def test_intersection(a: str, b: str, expected: bool) -> None:
    assert intersects(a, b) is expected
    assert intersects(b, a) is expected


@pytest.mark.parametrize(("a", "b", "expected"), INCLUSIONS)
def test_inclusion(a: str, b: str, expected: bool) -> None:
    assert includes(a, b) is expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "cannot be empty"),
        ("/a", "begins with"),
        ("a/", "ends with"),
        ("a//b", "has two"),
        ("*//b", "has two"),
        ("a?b", r"contains '\?'"),
        ("a#b", "contains '#'"),
        ("a$b", r"'\$' that is not followed by"),
        ("ab*", r"'\*' that is neither"),
    ],
)
def test_an_error_says_what_is_wrong(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        canonize(text)


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("**/*/**", "*/**"),
        ("**/*/*", "*/*/**"),
        ("**/$*/a", "*/**/a"),
        ("*/**/*/**/*", "*/*/*/**"),
        ("**/a/**/*", "**/a/*/**"),
        ("a$*$*$*b$*$*", "a$*b$*"),
    ],
)
def test_wildcards_are_put_in_order(text: str, form: str) -> None:
    assert canonize(text) == form


def test_pieces_of_a_chunk_do_not_overlap() -> None:
    assert not includes("ab$*bc", "abc")
    assert not intersects("ab$*bc", "abc")
    assert not intersects("a$*bc$*c", "abc")
    assert intersects("a$*bc$*c", "abcc")


# --- any expression -----------------------------------------------------------------------------

LITERALS = ["a", "b", "ab", "ba", "@a", "@b"]
CHUNKS = [*LITERALS, "*", "**", "a$*", "$*b", "a$*b", "$*a$*", "@a$*"]
texts = st.lists(st.sampled_from(CHUNKS), min_size=1, max_size=7).map("/".join)
expressions = texts.map(canonize)


@given(st.text(alphabet="ab/*$@#?", max_size=12))
def test_canonize_gives_a_valid_expression_or_none(text: str) -> None:
    try:
        form = canonize(text)
    except ValueError:
        assert not is_valid(text)
        return
    assert is_valid(form)
    assert canonize(form) == form


@given(texts)
def test_canonize_is_idempotent(text: str) -> None:
    assert canonize(canonize(text)) == canonize(text)


@given(expressions, expressions)
def test_intersection_is_symmetric(a: str, b: str) -> None:
    assert intersects(a, b) == intersects(b, a)


@given(expressions, expressions)
def test_inclusion_implies_intersection(a: str, b: str) -> None:
    assert not includes(a, b) or intersects(a, b)


@given(expressions)
def test_an_expression_includes_and_intersects_itself(a: str) -> None:
    assert includes(a, a)
    assert intersects(a, a)


@given(expressions, expressions, expressions)
def test_inclusion_is_transitive(a: str, b: str, c: str) -> None:
    assert not (includes(a, b) and includes(b, c)) or includes(a, c)


@given(expressions, st.lists(st.sampled_from(LITERALS), min_size=1, max_size=6).map("/".join))
def test_for_a_key_inclusion_and_intersection_are_the_same(a: str, key: str) -> None:
    assert includes(a, key) == intersects(a, key) == matches(a.split("/"), key.split("/"))


@given(expressions, expressions)
def test_what_a_key_shows_is_found(a: str, b: str) -> None:
    common = [k for k in KEYS if includes(a, k) and includes(b, k)]
    assert not common or intersects(a, b)
    if includes(a, b):
        assert all(includes(a, k) for k in KEYS if includes(b, k))


KEYS = ["/".join(chunks) for n in (1, 2, 3) for chunks in product(LITERALS, repeat=n)]


def matches(pattern: list[str], key: list[str]) -> bool:
    """The meaning of a pattern, tried out chunk by chunk and letter by letter."""
    if not pattern:
        return not key
    if pattern[0] == "**":
        return matches(pattern[1:], key) or (bool(key) and key[0][0] != "@" and matches(pattern, key[1:]))
    return bool(key) and chunk_matches(pattern[0], key[0]) and matches(pattern[1:], key[1:])


def chunk_matches(pattern: str, text: str) -> bool:
    if pattern == text:
        return True
    if "@" in (pattern[0], text[0]):
        return False
    return pattern == "*" or letters_match(pattern, text)


def letters_match(pattern: str, text: str) -> bool:
    if pattern.startswith("$*"):
        return any(letters_match(pattern[2:], text[i:]) for i in range(len(text) + 1))
    if not pattern or not text:
        return pattern == text
    return pattern[0] == text[0] and letters_match(pattern[1:], text[1:])


# --- hostile input ------------------------------------------------------------------------------

HOSTILE = [
    ("/".join(["**"] * 200), "/".join(["**"] * 200) + "/x"),
    ("/".join(["**/a"] * 200), "/".join(["a"] * 200) + "/b"),
    ("/".join(["**/a"] * 200) + "/x", "/".join(["**/a"] * 200) + "/y"),
    ("/".join(["**/$*a$*b"] * 100) + "/@x", "/".join(["**/b$*"] * 100) + "/@y/z"),
    ("$*a" * 200 + "b", "a" * 1000),
    ("$*a" * 200 + "$*b", "$*b" * 200 + "$*a"),
]


@pytest.mark.parametrize("ask", [intersects, includes])
@pytest.mark.parametrize(("a", "b"), HOSTILE)
def test_hostile_patterns_end_quickly(ask: Callable[[str, str], bool], a: str, b: str) -> None:
    began = time.process_time()
    ask(a, b)
    ask(b, a)
    assert time.process_time() - began < 1
    assert canonize("/".join(["**"] * 200)) == "**"
