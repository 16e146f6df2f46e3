from project.directory.models import *
from tests.catalog.models import *
from dynamo_single.testing import *
import pytest
def test_x(table):
    for i in range(7): Company.objects.create(company_id=f"c{i}", name=f"N{i%3}", stock="A" if i%2 else None)
    for f in (Company.objects.all(), Company.objects.order_by("-name"), Company.objects.filter(stock="A"), Company.objects.filter(pk__in=[f"c{i}" for i in range(9)]), Company.objects.filter(stock="A").allow_scan().using_index("primary"), Company.objects.values("name")):
        c=None; out=[]
        pages=[]
        while True:
            p=f.page(2,c); pages.append(p)
            print([getattr(x,"pk",x) for x in p], p.requests, p.consumed, p.has_previous, len(p.next_cursor or ""))
            c=p.next_cursor
            if not c: break
        while p.has_previous:
            p=f.page(2,p.previous_cursor)
            print("back",[getattr(x,"pk",x) for x in p], p.requests, p.has_next)
    for i in range(5):
        for c in "ab": Order.objects.create(customer=c, number=i)
    for o in ("number","-number"):
      for mr in (None,2,3):
        f=Order.objects.filter(customer__in=["a","b"]).order_by(o)
        if mr and mr>2: f=f.filter(status="x")
        p=f.page(3,max_requests=mr)
        while 1:
            print([x.pk for x in p], p.requests, p.ended_by_budget)
            if not p.has_next: break
            p=f.page(3,p.next_cursor,max_requests=mr)
        while p.has_previous:
            p=f.page(3,p.previous_cursor,max_requests=mr)
            print("back",[x.pk for x in p], p.requests, p.ended_by_budget)
