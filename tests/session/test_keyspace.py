"""Numbers for key expressions."""

from __future__ import annotations

from scapy_zenoh.session.keyspace import KeyTable


def test_number_stands_for_its_name_and_a_suffix_follows_directly() -> None:
    table = KeyTable(10)
    table.declare(1, "demo/a")
    assert table.resolve(1, None) == "demo/a"
    assert table.resolve(1, "/b") == "demo/a/b"
    assert table.resolve(1, "b") == "demo/ab"


def test_number_0_is_the_suffix_alone() -> None:
    table = KeyTable(10)
    assert table.resolve(0, "demo/a") == "demo/a"
    assert table.resolve(0, None) == ""


def test_unknown_number_has_no_name() -> None:
    table = KeyTable(10)
    assert table.resolve(5, None) is None
    assert table.resolve(5, "/b") is None


def test_withdrawn_number_can_be_used_again() -> None:
    table = KeyTable(10)
    table.declare(1, "old")
    assert table.undeclare(1) == "old"
    assert table.resolve(1, "/x") is None
    assert table.undeclare(1) is None
    table.declare(1, "new")
    assert table.resolve(1, "/x") == "new/x"


def test_number_declared_again_has_the_newer_name() -> None:
    table = KeyTable(10)
    table.declare(1, "old")
    table.declare(1, "new")
    assert table.resolve(1, None) == "new"


def test_full_table_says_so_and_keeps_what_it_has() -> None:
    table = KeyTable(2)
    for number in (1, 2, 3):
        table.declare(number, f"key/{number}")
    assert table.full
    assert [table.resolve(number, None) for number in (1, 2, 3)] == ["key/1", "key/2", None]
    table.declare(2, "other")
    assert table.resolve(2, None) == "other"
    table.undeclare(1)
    table.declare(3, "now")
    assert table.resolve(3, None) == "now"
