"""Boards and their entries: children of every kind, and a nullable reference."""

from __future__ import annotations

from typing import Any

from dynamo_single import models


class Board(models.Model):
    """The parent."""

    board_id = models.IdAttribute(prefix="board")
    name = models.UnicodeAttribute()

    cards = models.Children("Card")
    tasks = models.Children("Task")
    labels = models.Children("Label")

    class Keys:
        primary = models.Key("BOARD#{board_id}", "#METADATA")
        listed = models.IndexKey("gs1", "BOARD", "{name}#{board_id}")


class OpenManager(models.Manager[Any]):
    """Only what is open."""

    def get_queryset(self) -> Any:
        """A queryset with a filter of its own."""
        return super().get_queryset().filter(status="open")


class Card(models.Model):
    """Children whose default manager filters."""

    board = models.ReferenceAttribute(Board, on_delete=models.DO_NOTHING)
    card_id = models.UnicodeAttribute()
    status = models.UnicodeAttribute(default="open")

    objects = OpenManager()

    class Keys:
        primary = models.Key("BOARD#{board_id}", "CARD#{card_id}")


class Task(models.Model):
    """Children in the opposite order of their key."""

    board = models.ReferenceAttribute(Board, on_delete=models.DO_NOTHING)
    number = models.IntegerAttribute()

    class Keys:
        primary = models.Key("BOARD#{board_id}", "TASK#{number}")

    class Meta:
        ordering = ("-number",)


class Label(models.Model):
    """Children in an order that only another key has."""

    board = models.ReferenceAttribute(Board, on_delete=models.DO_NOTHING)
    label_id = models.UnicodeAttribute()
    text = models.UnicodeAttribute()

    class Keys:
        primary = models.Key("BOARD#{board_id}", "LABEL#{label_id}")
        by_text = models.IndexKey("gs1", "LABELS#{board_id}", "{text}#{label_id}")

    class Meta:
        ordering = ("text",)


class OpenNotes(models.Manager[Any]):
    """Only what is not struck out."""

    def get_queryset(self) -> Any:
        """A queryset with a filter of its own."""
        return super().get_queryset().exclude(text="struck out")


class Note(models.Model):
    """A note, on a board or on none."""

    note_id = models.IdAttribute(prefix="note")
    board = models.ReferenceAttribute(Board, on_delete=models.DO_NOTHING, null=True, related_name="notes")
    text = models.UnicodeAttribute(default="")

    objects = models.Manager["Note"]()
    unstruck = OpenNotes()

    class Keys:
        primary = models.Key("NOTE#{note_id}", "#METADATA")
        by_board = models.IndexKey("gs1", "NOTES#{board_id}", "{note_id}")


class Wall(models.Model):
    """The parent of children in an order that no key has."""

    wall_id = models.IdAttribute(prefix="wall")
    name = models.UnicodeAttribute()

    pins = models.Children("Pin", cascade=True)

    class Keys:
        primary = models.Key("WALL#{wall_id}", "#METADATA")


class Pin(models.Model):
    """Children in an order that no key has, with a copy of their parent's name."""

    wall = models.ReferenceAttribute(Wall, on_delete=models.CASCADE)
    pin_id = models.UnicodeAttribute(secret=False)
    color = models.UnicodeAttribute()
    wall_name = models.CopiedAttribute("wall", "name")

    class Keys:
        primary = models.Key("WALL#{wall_id}", "PIN#{pin_id}")

    class Meta:
        ordering = ("color",)
