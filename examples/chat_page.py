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


def sentence(error: Exception) -> str:
    """What the page tells of an error."""
    match error:
        case ConcurrentWrite():
            return "This chat was changed elsewhere, such as in another tab. You see it as it is now."
        case HithertoError():
            return f"That was not possible: {error}"
        case _:
            return f"The model gave no whole answer: {error}"


@app.exception_handler(HithertoError)
async def tell(_: Request, error: Exception) -> JSONResponse:
    return JSONResponse({"error": sentence(error)}, 409 if isinstance(error, ConcurrentWrite) else 400)


def conversation(request: Request, chat: str) -> Conversation:
    return request.app.state.memory.conversation(chat, scope=SCOPE)


def line(**told: str) -> str:
    return json.dumps(told) + "\n"


@app.get("/chats")
async def chats(request: Request) -> list[dict[str, Any]]:
    page = await request.app.state.memory.conversations(SCOPE)
    return [{"id": one.conversation, "title": one.title} for one in page.conversations]


@app.get("/chats/{chat}")
async def transcript(request: Request, chat: str, before: int | None = None) -> Any:
    return await conversation(request, chat).transcript(before=before)


@app.patch("/chats/{chat}")
async def rename(request: Request, chat: str, title: Annotated[str, Body(embed=True)]) -> None:
    await conversation(request, chat).configure(title=title)


@app.delete("/chats/{chat}")
async def delete(request: Request, chat: str) -> None:
    await conversation(request, chat).delete()


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
                yield line(piece="")  # the question is in the log
                while not turn.done:
                    chunks = await request.app.state.model.chat.completions.create(
                        model=MODEL, stream=True, **turn.request
                    )
                    async for chunk in turn.stream(chunks):
                        for choice in chunk.choices:
                            yield line(piece=choice.delta.content or "")
            if turn.partial:
                yield line(error="The answer broke off.")
        except (HithertoError, APIError) as error:
            yield line(error=sentence(error))

    return StreamingResponse(lines(), media_type="application/jsonl")


@app.get("/")
async def page() -> HTMLResponse:
    return HTMLResponse(PAGE)


PAGE = r"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Chat</title><meta name="viewport" content="width=device-width">
<link rel="icon" href="data:,"><style>
* { box-sizing: border-box } [hidden] { display: none !important }
body { display: flex; margin: 0; height: 100vh; font: 16px/1.5 system-ui, sans-serif; color: #222 }
button { font: inherit; padding: .2rem .8rem; border: 1px solid #bbb; border-radius: .5rem; background: #fff }
button:enabled { cursor: pointer } button:enabled:hover { background: #eee } button:disabled { color: #aaa }
nav { width: 17rem; overflow: auto; padding: .8rem; background: #f4f4f4 }
nav li { display: flex; align-items: center; border-radius: .5rem; padding: 0 .2rem } nav li.on { background: #ddd }
nav ul { padding: 0 } nav a { flex: 1; padding: .3rem; color: inherit; text-decoration: none }
nav a { overflow: hidden; white-space: nowrap; text-overflow: ellipsis } #new { width: 100% }
nav li:not(.on, :hover, :focus-within) button { display: none }
nav li button, footer button { border: 0; background: none; color: #666; padding: 0 .3rem; font-size: .8rem }
main { flex: 1; min-width: 0; display: flex; flex-direction: column; padding: .8rem }
/* It stays at the end by itself, and where it is when older messages come. */
#scroll { flex: 1; overflow: auto; overflow-anchor: none; display: flex; flex-direction: column-reverse }
#log { width: 100%; max-width: 46rem; margin: 0 auto auto; padding: 2px }
#log { display: flex; flex-direction: column; gap: .8rem }
#log > button { align-self: center }
article p { margin: 0; white-space: pre-wrap; overflow-wrap: anywhere }
footer { font-size: .8rem; color: #666 }
.user { align-self: end; max-width: 85%; text-align: right } .edited p { outline: 2px solid #36c }
.user p { display: inline-block; text-align: left; padding: .4rem .8rem; border-radius: 1rem; background: #e6eefc }
#error { width: 100%; max-width: 46rem; margin: .5rem auto; min-height: 1.5em; color: #b00 }
form { display: flex; gap: .5rem; align-items: end; width: 100%; max-width: 46rem; margin: 0 auto }
textarea { flex: 1; font: inherit; padding: .4rem .8rem; border: 1px solid #bbb; border-radius: .5rem; resize: none }
</style></head><body>
<nav><button id="new">New chat</button><ul id="chats"></ul></nav>
<main><div id="scroll"><div id="log" aria-live="polite"></div></div><p id="error" role="alert"></p>
<form id="ask"><textarea id="text" rows="3" placeholder="Message" aria-label="Message" autofocus></textarea>
<button type="button" id="cancel" hidden>Cancel</button><button id="send">Send</button></form></main>
<script>
let shown = { entries: [] }, edited = null; // a page of the transcript; the message that is being edited
const $ = (id) => document.getElementById(id), chat = () => location.hash.slice(1);
const make = (kind, text, more = {}) => Object.assign(document.createElement(kind), { textContent: text, ...more });

async function send(path, method, body) {
  const found = await fetch("/chats" + path, { method, headers: { "Content-Type": "application/json" },
    body: body && JSON.stringify(body) });
  if (!found.ok) throw new Error((await found.json()).error || `The server said ${found.status}.`);
  return found;
}
const read = async (path) => (await send(path, "GET")).json();
const tell = (error) => { $("error").textContent = error.message };

// A gesture: a request; then the page shows what is stored, and what went wrong. Meanwhile there is no other gesture.
const gesture = (work) => async (...given) => {
  const here = chat();
  let failed = { message: "" };
  for (const one of document.querySelectorAll("button")) one.disabled = true;
  tell(failed);
  await work(...given).catch((error) => { failed = error });
  if (chat() !== here) return; // another chat is looked at by now
  await draw().catch((error) => {
    failed = error;
    arrange();
  });
  tell(failed);
};

const ask = gesture(async (body) => {
  const { question, at } = body, answer = message("assistant", "…");
  let kept = !question; // whether the question is in the log
  if (question) $("text").value = "";
  show(shown.entries.filter((one) => at === undefined || one.seq <= at), false);
  if (question) $("log").append(message("user", question));
  $("log").append(answer);
  try {
    const found = await send(`/${chat()}/turns`, "POST", { ...body, expect: shown.rev });
    const lines = found.body.pipeThrough(new TextDecoderStream()).getReader();
    let said = "", rest = "";
    for (;;) {
      const { value, done } = await lines.read();
      if (done) break;
      const whole = (rest + value).split("\n");
      rest = whole.pop();
      for (const line of whole.map((one) => JSON.parse(one))) {
        if (line.error) throw new Error(line.error);
        kept ||= at === undefined; // the turn has begun
        said += line.piece;
      }
      if (said) answer.firstChild.textContent = said;
    }
    kept = true;
    if (question) edited = null;
  } finally {
    if (!kept) $("text").value = question;
  }
});

function message(role, text) {
  const made = make("article", "", { className: role });
  made.append(make("p", text));
  return made;
}

function show(entries, act = true) {
  const button = (text, onclick, more) => make("button", text, { onclick, disabled: !act, ...more });
  $("log").replaceChildren(...entries.map((one) => {
    const made = message(one.role, one.text), foot = make("footer", "");
    made.classList.toggle("edited", one.seq === edited?.seq);
    foot.append(new Date(one.said_at).toLocaleString([], { dateStyle: "medium", timeStyle: "short" }));
    if (one.partial) foot.append(" · broke off");
    if (one.branches > 1) foot.append(
      button("‹", () => go(one.earlier), { ariaLabel: "Earlier", disabled: !act || one.earlier === null }),
      `${one.branch} of ${one.branches}`,
      button("›", () => go(one.later), { ariaLabel: "Later", disabled: !act || one.later === null }));
    if (one.role === "user") foot.append(button("Edit", () => edit(one)));
    else if (one.at !== null) foot.append(button("Regenerate", () => ask({ at: one.at })));
    made.append(foot);
    return made;
  }));
  if (shown.before !== null) $("log").prepend(button("Older messages", () => older().catch(tell)));
  if (act && entries.at(-1)?.role === "user") $("log").append(button("Answer", () => ask({})));
}

function edit(one) {
  edited = one;
  $("text").value = one?.text ?? "";
  $("text").focus();
  arrange();
}

function arrange() {
  show(shown.entries);
  $("cancel").hidden = !edited;
  for (const one of ["new", "cancel", "send"]) $(one).disabled = false;
}

const go = gesture((seq) => send(`/${chat()}/switch`, "POST", { seq, expect: shown.rev }));

async function older() {
  const page = await read(`/${chat()}?before=${shown.before}`);
  shown = { ...shown, entries: [...page.entries, ...shown.entries], before: page.before };
  arrange();
}

async function draw() {
  const here = chat(), [chats, page] = await Promise.all([read(""), read("/" + here)]);
  if (chat() !== here) return;
  shown = page;
  edited = shown.entries.find((one) => one.seq === edited?.seq) ?? null;
  $("chats").replaceChildren(...chats.map((one) => {
    const row = make("li", "", { className: one.id === here ? "on" : "" }), title = one.title || "New chat";
    const rename = gesture(async () => {
      const better = prompt("Title", title);
      if (better !== null) await send("/" + one.id, "PATCH", { title: better });
    });
    const remove = gesture(async () => {
      if (!confirm(`Delete “${title}”?`)) return;
      await send("/" + one.id, "DELETE");
      if (one.id === here) begin();
    });
    row.append(make("a", title, { href: "#" + one.id, title }), make("button", "Rename", { onclick: rename }),
      make("button", "Delete", { onclick: remove }));
    return row;
  }));
  arrange();
}

const begin = () => { location.hash = Date.now() };
$("new").onclick = begin;
$("cancel").onclick = () => edit(null);
$("ask").onsubmit = (event) => {
  event.preventDefault();
  const question = $("text").value.trim();
  if (question && !$("send").disabled) ask({ question, at: edited?.at });
};
$("text").onkeydown = (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    $("ask").requestSubmit();
  }
};
onhashchange = () => { edited = null; tell({ message: "" }); draw().catch(tell) };
if (chat()) onhashchange(); else begin();
</script></body></html>
"""
