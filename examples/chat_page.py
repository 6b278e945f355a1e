"""A chat page in one file: sidebar, rename, delete, regenerate, edit, branches. Each gesture is one verb of Hitherto.

    pip install hitherto fastapi uvicorn openai
    uvicorn chat_page:app

The model is the one of `OPENAI_API_KEY`, or a server of your own (`OPENAI_BASE_URL`); `CHAT_MODEL` names it."""

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager  # noqa: TID251 (a stranger's code)
from typing import Annotated, Any

from fastapi import Body, FastAPI, Request
from fastapi.responses import HTMLResponse, JSONResponse, StreamingResponse
from openai import APIError, AsyncOpenAI

import hitherto
from hitherto import Conversation, Scope
from hitherto.errors import ConcurrentWrite, HithertoError

MODEL = os.environ.get("CHAT_MODEL", "gpt-4.1-mini")
SCOPE = Scope(tenant="local", user="me", agent="chat")  # in your application: who is logged in


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with hitherto.open() as app.state.memory, AsyncOpenAI(max_retries=0) as app.state.model:
        yield


app = FastAPI(lifespan=lifespan)


@app.exception_handler(HithertoError)
async def told(_: Request, error: Exception) -> JSONResponse:
    return JSONResponse({"error": str(error)}, 409 if isinstance(error, ConcurrentWrite) else 400)


def conversation(request: Request, chat: str) -> Conversation:
    return request.app.state.memory.conversation(chat, scope=SCOPE)


@app.get("/chats")
async def chats(request: Request) -> list[dict[str, Any]]:
    page = await request.app.state.memory.conversations(SCOPE)
    return [{"id": one.conversation, "title": one.title, "said_at": one.said_at} for one in page.conversations]


@app.get("/chats/{chat}")
async def transcript(request: Request, chat: str, before: int | None = None) -> Any:
    return await conversation(request, chat).transcript(before=before)


@app.patch("/chats/{chat}")
async def rename(request: Request, chat: str, title: Annotated[str, Body(embed=True)]) -> None:
    await conversation(request, chat).configure(title=title)


@app.delete("/chats/{chat}")
async def delete(request: Request, chat: str) -> None:
    await conversation(request, chat).delete()


@app.get("/chats/{chat}/branches/{seq}")
async def branches(request: Request, chat: str, seq: int) -> Any:
    return await conversation(request, chat).branches(seq)


@app.post("/chats/{chat}/switch")
async def switch(request: Request, chat: str, seq: Annotated[int, Body()], expect: Annotated[int, Body()]) -> None:
    await conversation(request, chat).switch(seq, expect=expect)


@app.post("/chats/{chat}/turns")
async def answer(
    request: Request,
    chat: str,
    question: Annotated[str | None, Body()] = None,
    at: Annotated[int | None, Body()] = None,
    expect: Annotated[int | None, Body()] = None,
) -> StreamingResponse:
    """Ask (`question`), edit (`question` and `at`, the message before it), regenerate (`at`, the question), or answer
    what the log ends with (neither). The lines are JSON: pieces of the answer, and an error where there is one."""

    async def lines() -> AsyncIterator[str]:
        first = question is not None and at is None
        try:
            async with conversation(request, chat).turn(
                question, at=at, expect=expect, question_first=first, model=MODEL
            ) as turn:
                while not turn.done:
                    chunks = await request.app.state.model.chat.completions.create(
                        model=MODEL, stream=True, **turn.request
                    )
                    async for chunk in turn.stream(chunks):
                        for choice in chunk.choices:
                            yield json.dumps({"piece": choice.delta.content or ""}) + "\n"
        except (HithertoError, APIError) as error:
            yield json.dumps({"error": str(error)}) + "\n"

    return StreamingResponse(lines(), media_type="application/jsonl")


@app.get("/")
async def page() -> HTMLResponse:
    return HTMLResponse(PAGE)


PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Chat</title><style>
body { display: flex; margin: 0; font: 16px system-ui; height: 100vh }
nav { width: 16rem; overflow: auto; border-right: 1px solid #ccc; padding: .5rem }
nav div { display: flex } nav .on { font-weight: bold } nav a { flex: 1; overflow: hidden; white-space: nowrap }
main { flex: 1; display: flex; flex-direction: column; padding: .5rem } #log { flex: 1; overflow: auto }
article { margin: .5rem 0; white-space: pre-wrap } article.user { font-weight: bold }
footer { font-weight: normal; font-size: .8rem } form { display: flex } form input { flex: 1 } #error { color: #b00 }
</style></head><body>
<nav><button id="new">New chat</button><div id="chats" style="display:block"></div></nav>
<main><div id="log" aria-live="polite"></div><p id="error" role="alert"></p>
<form id="ask"><input id="text" aria-label="Message" autocomplete="off"><button>Send</button></form></main>
<script>
let chat = location.hash.slice(1) || crypto.randomUUID(), shown = { entries: [], rev: 0 };
const $ = (id) => document.getElementById(id);
const make = (kind, text, more = {}) => Object.assign(document.createElement(kind), { textContent: text, ...more });
const call = async (path, method = "GET", body) => {
  const found = await fetch("/chats" + path, { method, headers: { "Content-Type": "application/json" },
    body: body && JSON.stringify(body) });
  const value = await found.json();
  if (!found.ok) throw new Error(value.error || found.status);
  return value;
};
const guarded = (work) => async (...given) => {
  $("error").textContent = "";
  try { await work(...given) } catch (error) { $("error").textContent = error.message }
  await draw();
};
const ask = guarded(async (body) => {
  if (body.question && body.at === undefined) $("log").append(make("article", body.question, { className: "user" }));
  const answer = make("article", "", { className: "assistant" });
  $("log").append(answer);
  const lines = (await fetch(`/chats/${chat}/turns`, { method: "POST",
    headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) }))
    .body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "", failed = "";
  for (;;) {
    const { value, done } = await lines.read();
    if (done) break;
    const parts = (rest + value).split("\\n");
    rest = parts.pop();
    for (const one of parts.map((line) => JSON.parse(line))) {
      answer.textContent += one.piece || "";
      failed = one.error || failed;
    }
  }
  if (failed) throw new Error(failed);
});
const go = guarded(async (entry, by) => {
  const ways = await call(`/${chat}/branches/${entry.branch_seq}`);
  await call(`/${chat}/switch`, "POST", { seq: ways[entry.branch - 1 + by].seq, expect: shown.rev });
});
async function draw() {
  location.hash = chat;
  $("chats").replaceChildren(...(await call("")).map((one) => {
    const row = make("div", "", { className: one.id === chat ? "on" : "" });
    row.append(
      make("a", one.title || "New chat", { href: "#" + one.id, onclick: guarded(() => { chat = one.id }) }),
      make("button", "Rename", { onclick: guarded(async () => {
        const title = prompt("Title", one.title);
        if (title !== null) await call("/" + one.id, "PATCH", { title });
      }) }),
      make("button", "Delete", { onclick: guarded(async () => {
        await call("/" + one.id, "DELETE");
        if (one.id === chat) chat = crypto.randomUUID();
      }) }));
    return row;
  }));
  shown = await call("/" + chat);
  const entries = shown.entries, last = entries.at(-1);
  $("log").replaceChildren(...entries.map((entry, at) => {
    const before = at ? entries[at - 1].seq : -1, article = make("article", entry.text, { className: entry.role });
    const foot = make("footer", new Date(entry.said_at).toLocaleString() + (entry.partial ? " · broke off" : "") + " ");
    if (entry.branches > 1) foot.append(
      make("button", "‹", { disabled: entry.branch === 1, onclick: () => go(entry, -1), title: "Earlier" }),
      ` ${entry.branch} of ${entry.branches} `,
      make("button", "›", { disabled: entry.branch === entry.branches, onclick: () => go(entry, 1), title: "Later" }));
    foot.append(entry.role === "user"
      ? make("button", "Edit", { onclick: () => {
        const question = prompt("Message", entry.text);
        if (question) ask({ question, at: before, expect: shown.rev });
      } })
      : make("button", "Regenerate", { onclick: () => ask({ at: before, expect: shown.rev }) }));
    article.append(foot);
    return article;
  }));
  if (last?.role === "user") $("log").append(
    make("button", "Answer", { onclick: () => ask({ expect: shown.rev }) }));
}
$("new").onclick = guarded(() => { chat = crypto.randomUUID() });
$("ask").onsubmit = (event) => {
  event.preventDefault();
  const question = $("text").value.trim();
  $("text").value = "";
  if (question) ask({ question, expect: shown.rev });
};
draw();
</script></body></html>
"""
