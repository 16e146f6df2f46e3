"""References with ``on_delete``: artists with their works, and galleries with a trash."""

from __future__ import annotations

from django.db.models import Q

from dynamo_single import models


class Artist(models.Model):
    """An artist, whom others refer to in each way; without a trash."""

    artist_id = models.UnicodeAttribute()
    name = models.UnicodeAttribute(default="")

    class Keys:
        primary = models.Key("ARTIST#{artist_id}", "#METADATA")


class Sketch(models.Model):
    """A sketch, which cascades with its artist, is in the artist's partition, and has a frame that cascades."""

    artist = models.ReferenceAttribute(Artist, on_delete=models.CASCADE)
    sketch_id = models.UnicodeAttribute()

    class Keys:
        primary = models.Key("ARTIST#{artist_id}", "SKETCH#{sketch_id}")


class Frame(models.Model):
    """A frame, which cascades with its sketch, and protects its maker."""

    frame_id = models.UnicodeAttribute()
    sketch = models.ReferenceAttribute(Sketch, on_delete=models.CASCADE)
    maker = models.ReferenceAttribute(Artist, on_delete=models.PROTECT, null=True)

    class Keys:
        primary = models.Key("FRAME#{frame_id}", "#METADATA")
        by_sketch = models.IndexKey("gs1", "FRAMES#{sketch_id}", "{frame_id}")
        by_maker = models.IndexKey("gs2", "MADE#{maker_id}", "{frame_id}")


class Painting(models.SoftDeleteModel):
    """A painting, which stays without its artist, and falls back to another editor; it has a trash."""

    painting_id = models.UnicodeAttribute()
    artist = models.ReferenceAttribute(Artist, on_delete=models.SET_NULL, null=True)
    artist_name = models.CopiedAttribute("artist", "name")
    editor = models.ReferenceAttribute(
        Artist, on_delete=models.SET_DEFAULT, default="nobody", related_name="edited_paintings"
    )

    class Keys:
        primary = models.Key("PAINTING#{painting_id}", "#METADATA")
        by_artist = models.IndexKey("gs1", "PAINTED#{artist_id}", "{painting_id}")
        by_editor = models.IndexKey("gs2", "EDITED#{editor_id}", "{painting_id}")


class Gallery(models.SoftDeleteModel):
    """A gallery with a trash."""

    gallery_id = models.UnicodeAttribute()
    name = models.UnicodeAttribute(default="")

    class Keys:
        primary = models.Key("GALLERY#{gallery_id}", "#METADATA")
        listed = models.IndexKey("gs1", "GALLERY", "{gallery_id}")


class Exhibit(models.SoftDeleteModel):
    """An exhibit, which cascades with its gallery."""

    exhibit_id = models.UnicodeAttribute()
    gallery = models.ReferenceAttribute(Gallery, on_delete=models.CASCADE)

    class Keys:
        primary = models.Key("EXHIBIT#{exhibit_id}", "#METADATA")
        by_gallery = models.IndexKey("gs1", "EXHIBITS#{gallery_id}", "{exhibit_id}")


class Loan(models.SoftDeleteModel):
    """A loan, which protects its gallery."""

    loan_id = models.UnicodeAttribute()
    gallery = models.ReferenceAttribute(Gallery, on_delete=models.PROTECT)

    class Keys:
        primary = models.Key("LOAN#{loan_id}", "#METADATA")
        by_gallery = models.IndexKey("gs1", "LOANS#{gallery_id}", "{loan_id}")


class Tour(models.Model):
    """A tour, whose gallery is set to ``None`` at a permanent deletion."""

    tour_id = models.UnicodeAttribute()
    gallery = models.ReferenceAttribute(Gallery, on_delete=models.SET_NULL, null=True)

    class Keys:
        primary = models.Key("TOUR#{tour_id}", "#METADATA")
        by_gallery = models.IndexKey("gs1", "TOURS#{gallery_id}", "{tour_id}")


class Theatre(models.SoftDeleteModel):
    """A theatre with checked references."""

    theatre_id = models.UnicodeAttribute()

    class Keys:
        primary = models.Key("THEATRE#{theatre_id}", "#METADATA")
        listed = models.IndexKey("gs1", "THEATRE", "{theatre_id}")


class Play(models.SoftDeleteModel):
    """A play, which cascades with its theatre through an index."""

    play_id = models.UnicodeAttribute()
    theatre = models.ReferenceAttribute(Theatre, on_delete=models.CASCADE, checked=True)

    class Keys:
        primary = models.Key("PLAY#{play_id}", "#METADATA")
        by_theatre = models.IndexKey("gs1", "PLAYS#{theatre_id}", "{play_id}")


class Lease(models.Model):
    """A lease, which protects its theatre through an index."""

    lease_id = models.UnicodeAttribute()
    theatre = models.ReferenceAttribute(Theatre, on_delete=models.PROTECT, checked=True, null=True)

    class Keys:
        primary = models.Key("LEASE#{lease_id}", "#METADATA")
        by_theatre = models.IndexKey("gs1", "LEASES#{theatre_id}", "{lease_id}")


class Imprint(models.Model):
    """An imprint, copied to a limited number of objects."""

    imprint_id = models.UnicodeAttribute()
    name = models.UnicodeAttribute()
    motto = models.UnicodeAttribute(default="")

    class Keys:
        primary = models.Key("IMPRINT#{imprint_id}", "#METADATA")


class Pressing(models.Model):
    """Three of these may follow a name, and a job lets more follow a motto."""

    imprint = models.ReferenceAttribute(Imprint, on_delete=models.DO_NOTHING)
    number = models.IntegerAttribute()
    imprint_name = models.CopiedAttribute("imprint", "name", max_holders=3)
    imprint_motto = models.CopiedAttribute("imprint", "motto", max_holders=4, beyond="job")

    class Keys:
        primary = models.Key("IMPRINT#{imprint_id}", "PRESSING#{number}")


class Venture(models.Model):
    """A venture, which counts its chores, and the open or urgent ones."""

    venture_id = models.UnicodeAttribute()

    chores = models.Children("Chore")
    chore_count = models.CounterAttribute("chores")
    open_count = models.CounterAttribute("chores", condition=Q(status="open"))
    urgent_count = models.CounterAttribute("chores", condition=Q(status="open", rank__gte=5) | Q(status="burning"))

    class Keys:
        primary = models.Key("VENTURE#{venture_id}", "#METADATA")


class Chore(models.SoftDeleteModel):
    """A chore, counted by its state."""

    venture = models.ReferenceAttribute(Venture, on_delete=models.DO_NOTHING, null=True)
    chore_id = models.UnicodeAttribute()
    status = models.UnicodeAttribute(default="open")
    rank = models.IntegerAttribute(default=0)
    note = models.UnicodeAttribute(default="")

    class Keys:
        primary = models.Key("CHORE#{chore_id}", "#METADATA")
        by_venture = models.IndexKey("gs1", "CHORES#{venture_id}", "{chore_id}")


class Applause(models.Model):
    """A number that is spread over several items, each with a partition of its own."""

    stage = models.UnicodeAttribute()
    shard = models.IntegerAttribute()
    hands = models.IntegerAttribute(default=0)

    class Keys:
        primary = models.Key("APPLAUSE#{stage}#{shard}", "#METADATA")
