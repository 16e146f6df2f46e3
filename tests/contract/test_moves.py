import pytest
from tests.catalog.models import Member, Order
from tests.catalog.boards import Board, Card, Note
from dynamo_single.testing import assert_requests
from tests.contract.tables import claims, stored
def test_x(table):
    m = Member.objects.create(member_id="a", email="a@x.org", badge=1)
    m.name="N"
    with assert_requests(["TransactWriteItems"]):
        m.move(member_id="b", badge=2)
    print(claims(table), stored(table).keys())
    m.refresh_from_db(); print(m.pk, m.name, m.badge)
    b = Board.objects.create(board_id="b", name="B")
    with assert_requests(4+1): b.move(board_id="c")
    Note.objects.create(note_id="n", board=b)
    with pytest.raises(Exception) as e: b.move(board_id="d")
    print(e.value); assert b.pk=="c"
