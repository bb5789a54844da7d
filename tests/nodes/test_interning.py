from roadstead.nodes.interning import CodeInterner


def test_codes_increase_in_order_of_first_use():
    interner = CodeInterner(["a"])

    assert [interner.code(value) for value in ("b", "a", "c", "b")] == [1, 0, 2, 1]
    assert interner.values == ["a", "b", "c"]
    assert len(interner) == 3


def test_find_does_not_intern():
    interner = CodeInterner(["a"])

    assert interner.find("a") == 0
    assert interner.find("b") == -1
    assert len(interner) == 1
