"""Parents whose keys have several parts, with descendants in one partition, for any names of references."""

from __future__ import annotations

from dynamo_single import models


class Estate(models.Model):
    """One of a tenant: its key has two parts."""

    tenant = models.UnicodeAttribute()
    code = models.IntegerAttribute()
    name = models.UnicodeAttribute(default="")

    lots = models.Children("Lot", cascade=True)
    stakeholders = models.Children("Stakeholder")
    letters = models.Children("EstateLetter")

    class Keys:
        primary = models.Key("T#{tenant}#E#{code}", "#ESTATE")


class Lot(models.Model):
    """A child next to its parent, with its own children there."""

    estate = models.ReferenceAttribute(Estate, on_delete=models.CASCADE)
    number = models.IntegerAttribute()
    title = models.UnicodeAttribute(default="")

    remarks = models.Children("LotRemark", cascade=True)

    class Keys:
        primary = models.Key("T#{estate.tenant}#E#{estate.code}", "LOT#{number}")
        by_title = models.IndexKey("gs1", "T#{estate.tenant}#LOTS", "{title}#{estate_id}#{number}")


class LotRemark(models.Model):
    """A grandchild: its key names parts of the parent's reference."""

    about = models.ReferenceAttribute(Lot, on_delete=models.CASCADE)
    remark_id = models.UnicodeAttribute()

    class Keys:
        primary = models.Key("T#{about.estate.tenant}#E#{about.estate.code}", "LOT#{about.number}#REMARK#{remark_id}")


class Stakeholder(models.Model):
    """A child that calls its parent otherwise."""

    stake_in = models.ReferenceAttribute(Estate, on_delete=models.DO_NOTHING)
    stakeholder_id = models.UnicodeAttribute()

    class Keys:
        primary = models.Key("T#{stake_in.tenant}#E#{stake_in.code}", "STAKEHOLDER#{stakeholder_id}")


class EstateLetter(models.Model):
    """A child in a partition of its own."""

    estate = models.ReferenceAttribute(Estate, on_delete=models.DO_NOTHING)
    letter_id = models.UnicodeAttribute()

    class Keys:
        primary = models.Key("LETTERS#{estate_id}", "{letter_id}")


class Plot(models.Model):
    """A parent in a separate partition, built from its own parent's key and more."""

    estate = models.ReferenceAttribute(Estate, on_delete=models.DO_NOTHING)
    number = models.IntegerAttribute()

    notes = models.Children("PlotNote")

    class Keys:
        primary = models.Key("PLOT#{estate.tenant}#{estate.code}#{number}", "#PLOT")


class PlotNote(models.Model):
    """Its child."""

    plot = models.ReferenceAttribute(Plot, on_delete=models.DO_NOTHING)
    note_id = models.UnicodeAttribute()

    class Keys:
        primary = models.Key("PLOT#{plot.estate.tenant}#{plot.estate.code}#{plot.number}", "NOTE#{note_id}")
