"""The pages: each a view here and a template."""

from __future__ import annotations

from fastapi import APIRouter

from hitherto.web.templating import ROOT
from hitherto.web.views import context, conversation, conversations, recall

ROUTES = APIRouter()
for _one in (conversations, conversation, context, recall):
    ROUTES.include_router(_one.router, prefix=ROOT)
