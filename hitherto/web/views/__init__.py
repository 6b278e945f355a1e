"""The pages: each a view here and a template."""

from __future__ import annotations

from fastapi import APIRouter

from hitherto.web.templating import ROOT
from hitherto.web.views import branches, conversation, conversations, costs, digests, health, runs

ROUTES = APIRouter()
for _one in (conversations, conversation, branches, digests, runs, costs, health):
    ROUTES.include_router(_one.router, prefix=ROOT)
