"""The pages: each a view here and a template."""

from __future__ import annotations

from fastapi import APIRouter

from hitherto.web.templating import ROOT
from hitherto.web.views import branches, context, conversation, conversations, costs, digests, health, recall, runs

ROUTES = APIRouter()
for _one in (conversations, conversation, context, branches, digests, runs, recall, costs, health):
    ROUTES.include_router(_one.router, prefix=ROOT)
