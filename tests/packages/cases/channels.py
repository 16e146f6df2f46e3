"""Consumers with the user of a session, and models read in them."""

from tests.packages.case import start

PACKAGE = "channels"
RESULT = "unchanged"

start("channels")

import asyncio

from channels.auth import AuthMiddlewareStack
from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncJsonWebsocketConsumer
from channels.testing import WebsocketCommunicator
from django.contrib.auth import get_user_model
from django.test import Client

from project.directory.models import Company


class Consumer(AsyncJsonWebsocketConsumer):
    async def connect(self):
        await self.accept()
        names = [company.name async for company in Company.objects.all()]
        count = await database_sync_to_async(Company.objects.count)()
        await self.send_json([self.scope["user"].get_username(), names, count])


user = get_user_model().objects.create_user("ann", "ann@example.com", "plainly-fake-1")
Company.objects.create(name="Acme")
client = Client()
client.force_login(user, "dynamo_single.contrib.accounts.backends.EmailOrUsernameBackend")
cookie = f"sessionid={client.cookies['sessionid'].value}".encode()


async def talk():
    talker = WebsocketCommunicator(AuthMiddlewareStack(Consumer.as_asgi()), "/", [(b"cookie", cookie)])
    assert (await talker.connect())[0]
    assert await talker.receive_json_from() == ["ann", ["Acme"], 1]
    await talker.disconnect()


asyncio.run(talk())
