"""The pages: each a view here and a template."""

from __future__ import annotations

from fastapi import APIRouter

from hitherto.web.templating import ROOT
from hitherto.web.views import (
    branches,
    context,
    conversation,
    conversations,
    costs,
    digests,
    erase,
    erase_conversation,
    export,
    health,
    recall,
    runs,
    tokens,
)
from hitherto.web.views.people import documents, fact, facts, people, review

ROUTES = APIRouter()
for _one in (
    *(conversations, conversation, context, branches, digests, runs, tokens, recall),
    *(people, facts, fact, review, documents),
    *(costs, health, erase_conversation, erase, export),
):
    ROUTES.include_router(_one.router, prefix=ROOT)
