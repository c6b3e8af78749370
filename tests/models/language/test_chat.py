"""The contract of Chat, on its twin in memory and on a backbone here."""

import pytest

from models.language.backbone import Backbone
from models.language.chat import Chat
from models.language.local_chat import LocalChat
from tests.models.language.chat_contract import ChatContract
from tests.models.language.scripted import ScriptedChat


class TestScripted(ChatContract):
    @pytest.fixture
    def chat(self) -> Chat:
        return ScriptedChat({"snow": "yes it is white indeed", "coal": "no"})


class TestLocal(ChatContract):
    @pytest.fixture
    def chat(self, tiny: Backbone) -> Chat:
        return LocalChat(tiny)
