"""The page of `examples/chat_page.py` in a browser, with a scripted model: each gesture, two tabs, a model that is
down."""

from __future__ import annotations

import re
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from playwright.async_api import Browser, BrowserContext, Dialog, Page, expect

import hitherto
from hitherto import Scope, assistant, user
from tests.acceptance.test_web_pages import running
from tests.databases import Databases
from tests.engine.turn.streams import chat
from tests.patience import PATIENCE
from tests.providers.models.endpoint import Answer, Body, Endpoint, refused

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SCOPE = Scope(tenant="local", user="me", agent="chat")
DOWN = refused(503, "overloaded")
CHANGED = "This chat was changed elsewhere, such as in another tab. You see it as it is now."

expect.set_options(timeout=PATIENCE * 1_000)


def cut(answer: Answer, after: str, until: threading.Event | None = None) -> Answer:
    """The answer, which breaks off behind these words, or goes on then when `until` is set."""
    end = answer.body.index("\n\n", answer.body.index(after)) + 2
    return Answer(body=answer.body, headers=answer.headers, cut=end, until=until)


class Model:
    """What it is asked is answered by `answers` in turn, and then by a repetition of the question."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.endpoint = Endpoint(self._answer)

    @property
    def asked(self) -> int:
        return len(self.endpoint.asked)

    def _answer(self, body: Body) -> Answer:
        return self.answers.pop(0) if self.answers else chat("You say: ", body["messages"][-1]["content"])


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    made = Model()
    with made.endpoint:
        yield made


@pytest.fixture(scope="module")
async def database_of_page(databases: Databases) -> AsyncIterator[str]:
    name = await databases.take()
    yield databases.url(name)
    await databases.give_back(name)


@pytest.fixture(scope="module")
def address(model: Model, database_of_page: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    words = ["-m", "uvicorn", "--app-dir", str(EXAMPLES), "chat_page:app", "--port", "PORT", "--log-level", "warning"]
    given = {"HITHERTO_DATABASE": database_of_page, "OPENAI_BASE_URL": model.endpoint.url, "OPENAI_API_KEY": "k"}
    with running(words, tmp_path_factory.mktemp("page"), **given) as found:
        yield found


@pytest.fixture
async def tabs(browser: Browser) -> AsyncIterator[BrowserContext]:
    made = await browser.new_context()
    made.set_default_timeout(PATIENCE * 1_000)
    yield made
    await made.close()


@pytest.fixture
async def page(tabs: BrowserContext, address: str, model: Model) -> AsyncIterator[Page]:
    """A page with a chat of its own. What its scripts do not expect fails the test."""
    model.answers.clear()
    opened, errors = await tabs.new_page(), list[str]()
    opened.on("pageerror", lambda error: errors.append(str(error)))
    await opened.goto(address)
    await opened.wait_for_url("**#*")
    yield opened
    assert errors == []
    assert model.answers == []


async def shows(page: Page, *texts: str) -> None:
    """Once the page shows these messages and is at rest."""
    await expect(page.locator("article p")).to_have_text(list(texts))
    await expect(page.locator("#send")).to_be_enabled()


async def tells(page: Page, words: str) -> None:
    await expect(page.locator("#error")).to_have_text(words)


async def say(page: Page, text: str) -> None:
    await page.fill("#text", text)
    await page.click("#send")


async def click(page: Page, button: str, *, at: int) -> None:
    """A button of the message at this place."""
    await page.locator("article").nth(at).get_by_role("button", name=button, exact=True).click()


async def edit(page: Page, text: str, *, at: int) -> None:
    await click(page, "Edit", at=at)
    await say(page, text)


async def asked(page: Page, model: Model, **rounds: str) -> list[str]:
    """A chat of these questions and answers."""
    said = list[str]()
    for question, answer in rounds.items():
        model.answers.append(chat(answer))
        await say(page, f"{question}?")
        said += [f"{question}?", answer]
        await shows(page, *said)
    return said


async def test_a_question_and_its_answer_as_it_comes(page: Page, model: Model) -> None:
    """Words are words, whatever a browser could read in them, and stay when the page is loaded anew."""
    begun = threading.Event()
    model.answers.append(cut(chat("<b>Not", " bold</b>"), "Not", begun))
    question = "<img src=x onerror='document.body.remove()'>\n<b>bold?</b>"
    await say(page, question)
    await expect(page.locator("article p")).to_have_text([question, "<b>Not"])
    await expect(page.locator("#send")).to_be_disabled()
    begun.set()
    await shows(page, question, "<b>Not bold</b>")
    assert await page.locator("article p").first.inner_text() == question, "with its lines"
    await page.reload()
    await shows(page, question, "<b>Not bold</b>")


async def test_the_sidebar(page: Page, model: Model) -> None:
    first = await asked(page, model, Alpha="One.")
    await page.click("#new")
    await shows(page)
    second = await asked(page, model, Beta="Two.")
    words = list[str]()

    async def answer(dialog: Dialog) -> None:
        words.append(dialog.message)
        await dialog.accept("Greek <i>letters</i>" if dialog.type == "prompt" else None)

    page.on("dialog", answer)
    row = page.get_by_role("listitem").filter(has_text="Alpha?")
    await row.get_by_role("link").click()
    await shows(page, *first)
    await row.get_by_role("button", name="Rename").click()
    renamed = page.get_by_role("listitem").filter(has_text="Greek <i>letters</i>")
    await expect(renamed).to_be_visible()
    await page.reload()
    await renamed.get_by_role("button", name="Delete").click()
    await shows(page)
    await expect(renamed).to_have_count(0)
    await page.get_by_role("listitem").filter(has_text="Beta?").get_by_role("link").click()
    await shows(page, *second)
    await page.go_back()
    await shows(page)
    assert words == ["Title", "Delete “Greek <i>letters</i>”?"]


async def test_answers_in_the_place_of_one(page: Page, model: Model) -> None:
    said = await asked(page, model, Day="Monday.", Month="May.")
    for answer in ("Tuesday.", "Wednesday."):
        model.answers.append(chat(answer))
        await click(page, "Regenerate", at=1)
        await shows(page, "Day?", answer)
    for button, way, texts in (
        ("Earlier", "2 of 3", ["Day?", "Tuesday."]),
        ("Earlier", "1 of 3", said),
        ("Later", "2 of 3", ["Day?", "Tuesday."]),
        ("Later", "3 of 3", ["Day?", "Wednesday."]),
    ):
        await click(page, button, at=1)
        await shows(page, *texts)
        await expect(page.locator("footer").nth(1)).to_contain_text(way)
    await expect(page.get_by_role("button", name="Later")).to_be_disabled()


async def test_a_question_in_the_middle_is_edited(page: Page, model: Model) -> None:
    said = await asked(page, model, Day="Monday.", Month="May.", Year="2026.")
    await click(page, "Edit", at=2)
    await expect(page.locator("#text")).to_have_value("Month?")
    await page.click("#cancel")
    await expect(page.locator("#text")).to_have_value("")
    await edit(page, "Week?", at=2)
    await shows(page, *said[:2], "Week?", "You say: Week?")
    await say(page, "So?")
    await shows(page, *said[:2], "Week?", "You say: Week?", "So?", "You say: So?")
    await click(page, "Earlier", at=2)
    await shows(page, *said)
    await edit(page, "Hour?", at=0)
    await shows(page, "Hour?", "You say: Hour?")
    await click(page, "Earlier", at=0)
    await shows(page, *said)
    await click(page, "Later", at=2)
    await shows(page, *said[:2], "Week?", "You say: Week?", "So?", "You say: So?")
    # Messages of other branches are between it and what it follows.
    await edit(page, "Now?", at=4)
    await shows(page, *said[:2], "Week?", "You say: Week?", "Now?", "You say: Now?")


async def test_a_tab_that_is_stale_is_told(page: Page, tabs: BrowserContext, model: Model) -> None:
    said = await asked(page, model, Day="Monday.")
    other = await tabs.new_page()
    await other.goto(page.url)
    await shows(other, *said)
    await say(page, "Month?")
    now = [*said, "Month?", "You say: Month?"]
    await shows(page, *now)
    count = model.asked
    await say(other, "Week?")
    await tells(other, CHANGED)
    await shows(other, *now)
    await expect(other.locator("#text")).to_have_value("Week?")
    await other.click("#send")
    now += ["Week?", "You say: Week?"]
    await shows(other, *now)
    await tells(other, "")
    await click(page, "Regenerate", at=1)
    await tells(page, CHANGED)
    await shows(page, *now)
    assert model.asked == count + 1, "a stale tab asks no model"
    page.on("dialog", lambda dialog: dialog.accept())
    await page.locator("nav .on").get_by_role("button", name="Delete").click()
    await shows(page)
    await click(other, "Regenerate", at=1)
    await tells(other, CHANGED)
    await shows(other)


async def test_tabs_at_once_and_double_clicks_land_once(page: Page, tabs: BrowserContext, model: Model) -> None:
    count = model.asked
    await page.fill("#text", "Day?")
    await page.dblclick("#send")
    await shows(page, "Day?", "You say: Day?")
    model.answers.append(chat("Monday."))
    await page.get_by_role("button", name="Regenerate").dblclick()
    await shows(page, "Day?", "Monday.")
    assert model.asked == count + 2
    other = await tabs.new_page()
    await other.goto(page.url)
    await shows(other, "Day?", "Monday.")
    go_on = threading.Event()
    model.answers += [cut(chat("Tues", "day."), "Tues", go_on), cut(chat("Wednes", "day."), "Wednes", go_on)]
    for tab in (page, other):
        await click(tab, "Regenerate", at=1)
        await expect(tab.locator("article p").last).to_have_text(re.compile("^(Tues|Wednes)$"))
    go_on.set()
    for tab in (page, other):
        await expect(tab.locator("#send")).to_be_enabled()
    told = [await tab.locator("#error").inner_text() for tab in (page, other)]
    assert sorted(told) == ["", CHANGED]
    for tab in (page, other):
        await expect(tab.locator("article p").last).to_have_text("Tuesday." if told[1] else "Wednesday.")
        await expect(tab.locator("footer").last).to_contain_text("3 of 3")
    await click(page, "Earlier", at=1)
    await shows(page, "Day?", "Monday.")
    await click(other, "Earlier", at=1)
    await tells(other, CHANGED)
    await shows(other, "Day?", "Monday.")


async def test_nothing_is_lost_when_the_model_is_down(page: Page, model: Model) -> None:
    model.answers.append(DOWN)
    await say(page, "Day?")
    await tells(page, "The model gave no whole answer: Error code: 503 - overloaded")
    await shows(page, "Day?")
    await expect(page.locator("#text")).to_have_value("")
    await page.reload()
    await page.get_by_role("button", name="Answer").click()
    said = ["Day?", "You say: Day?"]
    await shows(page, *said)
    model.answers.append(DOWN)
    await click(page, "Regenerate", at=1)
    await tells(page, "The model gave no whole answer: Error code: 503 - overloaded")
    await shows(page, *said)
    model.answers.append(DOWN)
    await edit(page, "Month?", at=0)
    await tells(page, "The model gave no whole answer: Error code: 503 - overloaded")
    await shows(page, *said)
    await expect(page.locator("#text")).to_have_value("Month?")
    await page.click("#send")
    await shows(page, "Month?", "You say: Month?")
    await expect(page.locator("footer").first).to_contain_text("2 of 2")


@pytest.mark.parametrize("how", ["cut", "without an end"])
async def test_what_came_of_an_answer_is_shown_as_such(page: Page, model: Model, how: str) -> None:
    half = cut(chat("It ", "is."), "It ") if how == "cut" else chat("It ", finish=None)
    model.answers += [half, half]
    await say(page, "Is it?")
    await expect(page.locator("#error")).not_to_be_empty()
    await shows(page, "Is it?", "It")
    await expect(page.locator("footer").last).to_contain_text("broke off")
    await click(page, "Regenerate", at=1)
    await expect(page.locator("#error")).not_to_be_empty()
    await shows(page, "Is it?", "It")
    await click(page, "Regenerate", at=1)
    await shows(page, "Is it?", "You say: Is it?")
    await expect(page.locator("footer").last).not_to_contain_text("broke off")


async def test_the_page_is_left_in_the_middle_of_an_answer(page: Page, model: Model) -> None:
    go_on = threading.Event()
    model.answers.append(cut(chat("It ", "is."), "It ", go_on))
    await say(page, "Is it?")
    await expect(page.locator("article p").last).to_have_text("It")
    await page.reload()
    await expect(page.locator("article p").first).to_have_text("Is it?")
    while await page.locator("article").count() < 2:  # the server hears of it when it does
        await page.reload()
        await expect(page.locator("article p").first).to_have_text("Is it?")
    await shows(page, "Is it?", "It")
    await expect(page.locator("footer").last).to_contain_text("broke off")
    go_on.set()


async def test_a_long_message_and_many(page: Page, model: Model, database_of_page: str) -> None:
    async with hitherto.open(database_of_page, worker=False) as memory:
        log = memory.conversation(page.url.partition("#")[2], scope=SCOPE)
        for number in range(30):
            await log.append(user(f"q{number}"), assistant(f"a{number}"))
    said = [f"{kind}{number}" for number in range(30) for kind in "qa"]
    await page.reload()
    await shows(page, *said[10:])
    await page.get_by_role("button", name="Older messages").click()
    await shows(page, *said)
    await expect(page.get_by_role("button", name="Older messages")).to_have_count(0)
    await edit(page, "And?", at=10)
    await shows(page, *said[:10], "And?", "You say: And?")
    long = "word " * 20_000
    model.answers.append(chat("Long."))
    await say(page, long)
    await shows(page, *said[:10], "And?", "You say: And?", long.strip(), "Long.")
    await say(page, "So?")
    await expect(page.locator("article p").last).to_have_text("You say: So?")
