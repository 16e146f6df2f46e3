"""What is worked out of a model is kept until its keys or names change."""

from __future__ import annotations

from dynamo_single.orm.rollout.caches import changing, kept


def test_what_is_kept_is_worked_out_once_until_something_changes() -> None:
    """By its arguments, as ``functools`` does."""
    asked = []

    @kept()
    def length(text: str) -> int:
        asked.append(text)
        return len(text)

    assert [length("a"), length("a"), length("bb")] == [1, 1, 2]
    with changing():
        pass
    assert length("a") == 1
    assert asked == ["a", "bb", "a"]


def test_what_was_worked_out_while_something_changed_is_worked_out_again() -> None:
    """Half of it could be of before."""
    names = ["before"]

    @kept()
    def name(model: str) -> str:
        found = names[0]
        if found == "before":
            with changing():  # as another thread does meanwhile
                names[0] = "now"
        return found

    assert name("m") == "now"
    assert name("m") == "now"


def test_what_is_worked_out_within_a_change_is_not_kept() -> None:
    """The change is not over then."""
    names = ["before"]

    @kept()
    def name(model: str) -> str:
        return names[0]

    with changing():
        assert name("m") == "before"
        names[0] = "now"
    assert name("m") == "now"
