"""Edges, copies, counters and ``on_delete`` by random writes, against what a model in Python says that there is."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from django.db.models import ProtectedError

from dynamo_single.exceptions import MissingReference
from dynamo_single.table import Table
from dynamo_single.verification import verify
from tests.catalog.servers import GameMember, GamePlayer, GameServer
from tests.catalog.studios import Artist, Chore, Frame, Lease, Painting, Play, Sketch, Theatre, Venture
from tests.contract.clubs import items
from tests.deep import examples

RUNS = examples(6, 60)
STEPS = examples(40, 120)
PKS = ("1", "2", "3")
NAMES = ("Ann", "Bob", "Cyd")


class World:
    """What is in the table, as plain Python, and the writes that do the same to both."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.players: dict[str, str] = {}
        self.servers: dict[str, str] = {}
        self.edges: dict[tuple[str, str], str] = {}
        self.artists: dict[str, str] = {"nobody": ""}
        self.sketches: set[tuple[str, str]] = set()
        self.frames: dict[str, tuple[str, str, str | None]] = {}
        self.paintings: dict[str, tuple[str | None, str, bool]] = {}
        self.ventures: set[str] = set()
        self.chores: dict[str, tuple[str | None, str, int, bool]] = {}
        self.theatres: dict[str, bool] = {}
        self.plays: dict[str, tuple[str, str]] = {}
        self.leases: dict[str, str] = {}
        Artist.objects.create(artist_id="nobody")

    def step(self) -> None:
        """One write, if what it is about is there."""
        steps: list[Callable[[], None]] = [
            *(self.make_player, self.make_server, self.add, self.add, self.remove, self.set_servers, self.clear),
            *(self.rename_player, self.delete_player, self.delete_server),
            *(self.make_artist, self.rename_artist, self.delete_artist, self.delete_artist),
            *(self.make_sketch, self.make_frame, self.delete_frame, self.make_painting, self.bin_painting),
            *(self.make_venture, self.make_chore, self.change_chore, self.change_chore, self.bin_chore),
            *(self.make_theatre, self.make_play, self.make_lease, self.delete_lease, self.delete_theatre),
            *(self.delete_theatre, self.restore_theatre),
        ]
        self.random.choice(steps)()

    def one(self, of: Any) -> Any:
        """One of what there is, or ``None``."""
        return self.random.choice(sorted(of)) if of else None

    def some(self) -> str:
        """A ``pk`` that may be taken."""
        return self.random.choice(PKS)

    # edges and copies

    def make_player(self) -> None:
        pk, name = self.some(), self.random.choice(NAMES)
        if pk not in self.players:
            GamePlayer.objects.create(player_id=pk, username=name)
            self.players[pk] = name

    def make_server(self) -> None:
        pk = self.some()
        if pk not in self.servers:
            GameServer.objects.create(server_id=pk, name=pk)
            self.servers[pk] = pk

    def add(self) -> None:
        server, player = self.one(self.servers), self.one(self.players)
        if server and player:
            role = self.random.choice(("member", "admin"))
            if self.random.random() < 0.5:
                GameServer(server_id=server).players.add(player, through_defaults={"role": role})
            else:
                GamePlayer(player_id=player).servers.add(server, through_defaults={"role": role})
            self.edges.setdefault((server, player), role)

    def remove(self) -> None:
        edge = self.one(self.edges)
        if edge:
            GamePlayer(player_id=edge[1]).servers.remove(edge[0])
            del self.edges[edge]

    def set_servers(self) -> None:
        player = self.one(self.players)
        if player:
            wanted = [pk for pk in sorted(self.servers) if self.random.random() < 0.5]
            GamePlayer(player_id=player).servers.set(wanted)
            kept = {edge: role for edge, role in self.edges.items() if edge[1] != player or edge[0] in wanted}
            self.edges = {**{(pk, player): "member" for pk in wanted}, **kept}

    def clear(self) -> None:
        server = self.one(self.servers)
        if server and self.random.random() < 0.3:
            GameServer(server_id=server).players.clear()
            self.edges = {edge: role for edge, role in self.edges.items() if edge[0] != server}

    def rename_player(self) -> None:
        pk = self.one(self.players)
        if pk:
            self.players[pk] = self.random.choice(NAMES)
            GamePlayer.objects.filter(pk=pk).update(username=self.players[pk])

    def delete_player(self) -> None:
        pk = self.one(self.players)
        if pk and self.random.random() < 0.4:
            GamePlayer.objects.get(pk=pk).delete()
            del self.players[pk]
            self.edges = {edge: role for edge, role in self.edges.items() if edge[1] != pk}

    def delete_server(self) -> None:
        pk = self.one(self.servers)
        if pk and self.random.random() < 0.4:
            GameServer.objects.filter(pk=pk).delete()
            del self.servers[pk]
            self.edges = {edge: role for edge, role in self.edges.items() if edge[0] != pk}

    # on_delete

    def make_artist(self) -> None:
        pk = self.some()
        if pk not in self.artists:
            self.artists[pk] = self.random.choice(NAMES)
            Artist.objects.create(artist_id=pk, name=self.artists[pk])

    def rename_artist(self) -> None:
        pk = self.one(self.artists)
        artist = Artist.objects.get(pk=pk)
        artist.name = self.artists[pk] = self.random.choice(NAMES)
        artist.save()

    def make_sketch(self) -> None:
        artist = self.one(self.artists)
        key = (artist, self.some())
        if key not in self.sketches:
            Sketch.objects.create(artist_id=key[0], sketch_id=key[1])
            self.sketches.add(key)

    def make_frame(self) -> None:
        sketch, pk = self.one(self.sketches), self.some()
        maker = self.one(self.artists) if self.random.random() < 0.3 else None
        if sketch and pk not in self.frames:
            Frame.objects.create(frame_id=pk, sketch_id="~~".join(sketch), maker_id=maker)
            self.frames[pk] = (*sketch, maker)

    def delete_frame(self) -> None:
        pk = self.one(self.frames)
        if pk:
            Frame.objects.filter(pk=pk).delete()
            del self.frames[pk]

    def make_painting(self) -> None:
        pk, artist, editor = self.some(), self.one(self.artists), self.one(self.artists)
        if pk not in self.paintings:
            Painting.objects.create(painting_id=pk, artist_id=artist, editor_id=editor)
            self.paintings[pk] = (artist, editor, True)

    def bin_painting(self) -> None:
        pk = self.one(self.paintings)
        if pk:
            artist, editor, live = self.paintings[pk]
            painting = Painting.all_objects.get(pk=pk)
            (painting.delete if live else painting.restore)()
            self.paintings[pk] = (artist, editor, not live)

    def delete_artist(self) -> None:
        pk = self.one(self.artists)
        protected = any(maker == pk for _, _, maker in self.frames.values())
        by_default = pk == "nobody" and any(editor == pk for _, editor, _ in self.paintings.values())
        if pk == "nobody" and not (protected or by_default):
            return  # the default has to be there for the others
        artist = Artist.objects.get(pk=pk)
        if protected or by_default:
            with pytest.raises(ProtectedError):
                artist.delete()
            return
        artist.delete()
        del self.artists[pk]
        self.sketches = {key for key in self.sketches if key[0] != pk}
        self.frames = {key: frame for key, frame in self.frames.items() if frame[0] != pk}
        self.paintings = {
            key: (None if artist_id == pk else artist_id, "nobody" if editor == pk else editor, live)
            for key, (artist_id, editor, live) in self.paintings.items()
        }

    # counters

    def make_venture(self) -> None:
        pk = self.some()
        if pk not in self.ventures:
            Venture.objects.create(venture_id=pk)
            self.ventures.add(pk)

    def chore(self) -> tuple[str | None, str, int]:
        status = self.random.choice(("open", "done", "burning"))
        return self.one(self.ventures), status, self.random.choice((0, 5))

    def make_chore(self) -> None:
        pk, (venture, status, rank) = self.some(), self.chore()
        if pk not in self.chores:
            Chore.objects.create(chore_id=pk, venture_id=venture, status=status, rank=rank)
            self.chores[pk] = (venture, status, rank, True)

    def change_chore(self) -> None:
        pk = self.one({pk for pk, chore in self.chores.items() if chore[3]})
        if pk:
            venture, status, rank = self.chore()
            Chore.objects.filter(pk=pk).update(venture_id=venture, status=status, rank=rank)
            self.chores[pk] = (venture, status, rank, True)

    def bin_chore(self) -> None:
        pk = self.one(self.chores)
        if pk:
            chore = Chore.all_objects.get(pk=pk)
            (chore.delete if self.chores[pk][3] else chore.restore)()
            self.chores[pk] = (*self.chores[pk][:3], not self.chores[pk][3])

    # references that are checked, and the trash

    def make_theatre(self) -> None:
        pk = self.some()
        if pk not in self.theatres:
            Theatre.objects.create(theatre_id=pk)
            self.theatres[pk] = True

    def refer(self, make: Callable[[str], Any], known: Any, pk: str, value: Any) -> None:
        theatre = self.some()
        if pk in known:
            return
        if self.theatres.get(theatre):
            make(theatre)
            known[pk] = value(theatre)
        else:
            with pytest.raises(MissingReference):
                make(theatre)

    def make_play(self) -> None:
        pk = self.some()
        self.refer(lambda t: Play.objects.create(play_id=pk, theatre_id=t), self.plays, pk, lambda t: (t, ""))

    def make_lease(self) -> None:
        pk = self.some()
        self.refer(lambda t: Lease.objects.create(lease_id=pk, theatre_id=t), self.leases, pk, lambda t: t)

    def delete_lease(self) -> None:
        pk = self.one(self.leases)
        if pk:
            Lease.objects.filter(pk=pk).delete()
            del self.leases[pk]

    def delete_theatre(self) -> None:
        pk = self.one(self.theatres)
        if not pk:
            return
        theatre = Theatre.all_objects.get(pk=pk)
        for_good = not self.theatres[pk] or self.random.random() < 0.3
        delete = theatre.hard_delete if for_good else theatre.delete
        if pk in self.leases.values():
            with pytest.raises(ProtectedError):
                delete()
            return
        delete()
        if for_good:
            del self.theatres[pk]
            self.plays = {key: play for key, play in self.plays.items() if play[0] != pk}
        else:
            self.theatres[pk] = False
            self.plays = {key: (t, "in the trash" if t == pk else state) for key, (t, state) in self.plays.items()}

    def restore_theatre(self) -> None:
        pk = self.one({pk for pk, live in self.theatres.items() if not live})
        if pk:
            Theatre.deleted_objects.get(pk=pk).restore()
            self.theatres[pk] = True
            self.plays = {key: (t, "" if t == pk else state) for key, (t, state) in self.plays.items()}

    def counted(self, pk: str) -> tuple[int, int, int]:
        """What a venture counts."""
        live = [(status, rank) for venture, status, rank, here in self.chores.values() if venture == pk and here]
        urgent = [each for each in live if each[0] == "burning" or (each[0] == "open" and each[1] >= 5)]
        return len(live), sum(status == "open" for status, _ in live), len(urgent)

    def check(self, table: Table) -> None:
        """What is stored is what there is."""
        assert {pk: player.username for pk, player in GamePlayer.objects.in_bulk(PKS).items()} == self.players
        found = {
            (edge.server_id, edge.player_id): (edge.role, edge.username)
            for pk in self.servers
            for edge in GameMember.objects.filter(server=pk)
        }
        assert found == {edge: (role, self.players[edge[1]]) for edge, role in self.edges.items()}
        for pk in self.players:
            wanted = sorted(server for server, player in self.edges if player == pk)
            assert sorted(server.pk for server in GamePlayer(player_id=pk).servers.all()) == wanted
        kinds: dict[str, int] = {}
        for item in items(table).values():
            kinds[item["itemType"]["S"]] = kinds.get(item["itemType"]["S"], 0) + 1
        wanted_kinds = {
            "GamePlayer": len(self.players),
            "GameServer": len(self.servers),
            "GameMember": len(self.edges),
            "Artist": len(self.artists),
            "Sketch": len(self.sketches),
            "Frame": len(self.frames),
            "Painting": len(self.paintings),
            "Venture": len(self.ventures),
            "Chore": len(self.chores),
            "Theatre": len(self.theatres),
            "Play": len(self.plays),
            "Lease": len(self.leases),
        }
        assert kinds == {kind: number for kind, number in wanted_kinds.items() if number}
        paintings: dict[str, Any] = Painting.all_objects.in_bulk(PKS)
        assert {
            pk: (each.artist_id, each.editor_id, each.deleted_at is None, each.artist_name)
            for pk, each in paintings.items()
        } == {
            pk: (artist, editor, live, None if artist is None else self.artists[artist])
            for pk, (artist, editor, live) in self.paintings.items()
        }
        ventures: dict[str, Any] = Venture.objects.in_bulk(PKS)
        assert {pk: (each.chore_count, each.open_count, each.urgent_count) for pk, each in ventures.items()} == {
            pk: self.counted(pk) for pk in self.ventures
        }
        assert {pk: each.deleted_at is None for pk, each in Play.all_objects.in_bulk(PKS).items()} == {
            pk: not state for pk, (_, state) in self.plays.items()
        }


@pytest.mark.parametrize("seed", range(RUNS))
def test_the_table_is_what_the_model_says(table: Table, seed: int) -> None:
    """After each write, and the whole table fits together at the end."""
    world = World(seed)
    for _ in range(STEPS):
        world.step()
        world.check(table)
    assert list(verify()) == []
