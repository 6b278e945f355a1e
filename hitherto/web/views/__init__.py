"""The pages: each a view here and a template."""

from __future__ import annotations

from fastapi import APIRouter

from hitherto.web.templating import ROOT
from hitherto.web.views import conversation, conversations

ROUTES = APIRouter()
for _one in (conversations, conversation):
    ROUTES.include_router(_one.router, prefix=ROOT)
