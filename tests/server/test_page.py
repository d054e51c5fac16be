"""The page, in a real Chromium over a real server.

Whatever a test does, at its end no rule of the content policy was broken, no request has left the origin, no token
stood in an address, and no script has failed.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from playwright.sync_api import Browser, Page, Route, ViewportSize, expect, sync_playwright
from support.chromium import FLAGS, executable
from support.serving import Serving

BATCH = """SELECT count(*) AS children FROM visits WHERE nights < 2;
SELECT count(*) AS "<img src=x onerror=document.title='struck'>" FROM visits WHERE nights >= 5;
SELECT state, count(*) AS n FROM visits GROUP BY state;
SELECT state, sex, count(*) AS n FROM visits GROUP BY state, sex;
SELECT nights, count(*) AS n FROM visits GROUP BY nights"""
ONE = "SELECT count(*) AS n FROM visits WHERE age < 18"
CHECKS = Path(__file__).with_name("page_checks.js").read_text()
WATCH = "addEventListener('securitypolicyviolation', (e) => (window.broken ??= []).push(e.violatedDirective))"
PATIENCE = 30_000
Visit = Callable[..., Page]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = executable()
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def visit(browser: Browser, server: Serving) -> Iterator[Visit]:
    """Opens the page; with a token, signs in."""
    pages: list[Page] = []
    addresses: list[str] = []
    failures: list[str] = []

    def opened(token: str | None = None, *, width: int = 1280, **options: Any) -> Page:
        context = browser.new_context(viewport=ViewportSize(width=width, height=900), **options)
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        page.add_init_script(WATCH)
        page.on("request", lambda request: addresses.append(request.url))
        page.on("pageerror", lambda error: failures.append(str(error)))
        page.on(
            "console", lambda message: failures.append(message.text) if "Content Security" in message.text else None
        )
        page.goto(server.address)
        pages.append(page)
        if token is not None:
            page.get_by_label("Access token").fill(token)
            page.keyboard.press("Enter")
            expect(page.locator("#app")).to_be_visible()
        return page

    yield opened
    broken = [page.evaluate("window.broken ?? []") for page in pages]
    for page in pages:
        page.context.close()
    assert not any(broken)
    assert not failures
    assert addresses and all(address.startswith((server.address, "blob:")) for address in addresses)
    assert not any("tacit_" in address for address in addresses)


def explained(page: Page, sql: str) -> None:
    page.locator("#sql").fill(sql)
    expect(page.locator("#answer")).to_have_attribute("aria-disabled", "false")


def charges(server: Serving, token: str) -> int:
    entries = server.json("GET", "/api/history", token)[1]["entries"]
    return sum(entry["kind"] == "charge" for entry in entries)


def test_signing_in_and_out(visit: Visit, server: Serving) -> None:
    page = visit()
    field, alert = page.get_by_label("Access token"), page.get_by_role("alert")
    for wrong, words in (("tacit_short", "not a whole token"), (f"tacit_{'0' * 16}_{'a' * 43}", "unknown, revoked")):
        field.fill(wrong)
        page.get_by_role("button", name="Sign in").click()
        expect(alert).to_contain_text(words)
    field.fill(server.token("page-in"))
    page.keyboard.press("Enter")
    expect(page.locator("#who")).to_contain_text("page-in")
    expect(page.locator(".curator-only").first).to_be_hidden()
    page.get_by_role("button", name="age integer").or_(page.get_by_role("button", name="age bigint")).first.click()
    expect(page.locator("#sql")).to_have_value("age")
    page.get_by_role("button", name="Sign out").click()
    expect(field).to_be_visible()
    assert page.evaluate("sessionStorage.length") == 0
    assert page.locator("#sql").input_value() == ""


def test_explains_while_one_types(visit: Visit, server: Serving) -> None:
    token = server.token("page-types", epsilon=2)
    page = visit(token)
    given_up: list[str] = []
    page.on("requestfailed", lambda request: given_up.append(request.url))
    held: list[Route] = []
    page.route("**/api/explain", lambda route: held.append(route), times=1)
    with page.expect_request("**/api/explain"):
        page.locator("#sql").press_sequentially(ONE[:-1])
    page.locator("#sql").press_sequentially("8")
    sentence = page.locator("#plan-sentence")
    expect(sentence).to_contain_text("19 times out of 20, for ε = 0.5 of your 2 left")
    assert len(held) == 1 and given_up == [f"{server.address}/api/explain"]
    expect(page.locator(".plan-table")).to_contain_text("n")
    expect(page.locator(".alternatives")).to_contain_text("noisy histogram")

    before = page.locator("#error").input_value()
    page.get_by_role("slider", name="Budget for this batch").press("End")
    expect(page.locator("#answer")).to_have_text("Answer for ε 2")
    assert float(page.locator("#error").input_value()) < float(before)
    page.get_by_label("All figures within plus or minus").fill("30")
    page.keyboard.press("Tab")
    expect(sentence).to_contain_text("Each count within ±30")
    assert float(page.locator("#epsilon").input_value()) < 0.5
    page.get_by_label("ε for this batch").fill("2.5")
    page.keyboard.press("Tab")
    expect(page.locator("#answer-note")).to_contain_text("This costs ε 2.5, and you have 2 left")
    assert page.locator("#answer").is_disabled()
    assert charges(server, token) == 0


def test_an_error_is_underlined(visit: Visit, server: Serving) -> None:
    page = visit(server.token("page-wrong"))
    page.locator("#sql").fill(f"{ONE};\nSELECT count(*) FROM visits WHERE state = '😀' AND agee < 3")
    expect(page.locator(".mirror .wrong")).to_have_text("agee")
    expect(page.locator(".problem")).to_contain_text("no such column in visits: agee")
    expect(page.locator(".problem")).to_contain_text("did you mean age?")
    assert page.locator("#sql").get_attribute("aria-invalid") == "true"
    where, carets = page.locator(".problem-where").inner_text().split("\n")
    assert carets.index("^") == len(where[: where.index("agee")].encode("utf-16-le")) // 2
    page.get_by_role("button", name="Line 2").click()
    area = "(a => a.value.slice(a.selectionStart, a.selectionEnd))(document.getElementById('sql'))"
    assert page.evaluate(area) == "agee"
    page.keyboard.insert_text("age")
    expect(page.locator("#answer")).to_have_text("Answer for ε 0.5")
    expect(page.locator(".problem")).to_have_count(0)


def test_answers_have_pictures_and_lower_the_budget(visit: Visit, server: Serving) -> None:
    token = server.token("page-answers", epsilon=2)
    page = visit(token)
    explained(page, BATCH)
    expect(page.locator("#budget-left")).to_have_text("2")
    page.locator("#sql").press("Control+Enter")
    expect(page.locator("#answer")).to_be_focused()
    assert charges(server, token) == 0
    page.keyboard.press("Control+Enter")

    cards = page.locator("#answers .card")
    expect(cards).to_have_count(4)
    single, by_state, by_both, by_nights = (cards.nth(i) for i in range(4))
    expect(single.locator("svg")).to_be_visible()
    expect(single.get_by_role("rowheader")).to_contain_text(["children", "<img src=x"])
    assert page.title() == "Ask · tacit" and page.locator("#answers img").count() == 0
    expect(by_state.locator(".chart-bar")).to_have_count(5)
    expect(by_state.locator(".whisker")).to_have_count(5)
    expect(by_state.get_by_role("rowheader")).to_have_text(["NY", "NJ", "CA", "other", "NULL"])
    expect(by_both.locator(".heat")).to_have_count(15)
    expect(by_nights.locator(".curve")).to_be_visible()
    expect(by_nights.locator(".dot")).to_have_count(8)
    expect(page.locator("#budget-left")).to_have_text("1.5")
    expect(page.locator("#answer")).to_have_text("Answer, free")

    files = {}
    for kind in ("CSV", "Parquet", "JSON"):
        with page.expect_download() as info:
            page.get_by_role("button", name=kind).click()
        files[kind] = info.value.path().read_bytes()
    figures = pyarrow.parquet.read_table(io.BytesIO(files["Parquet"])).num_rows
    table = list(csv.DictReader(io.StringIO(files["CSV"].decode())))
    assert {"query", "group", "column", "value", "low", "high"} <= set(table[0])
    assert figures == len(table) == 2 + 5 + 15 + by_nights.locator("tbody tr").count()
    assert len(json.loads(files["JSON"])["answers"]) == 5

    page.reload()
    expect(cards).to_have_count(4)
    page.get_by_role("link", name="History").click()
    page.get_by_role("button", name="Open again, free").click()
    expect(cards).to_have_count(4)
    assert charges(server, token) == 1


def test_a_lost_connection_is_resumed_after_a_reload(visit: Visit, server: Serving) -> None:
    token = server.token("page-lost")
    page = visit(token)
    explained(page, "SELECT count(*) AS n FROM visits WHERE age < 33")

    def lose(route: Route) -> None:
        route.fetch()
        route.abort()

    page.route("**/api/answer", lose, times=1)
    page.route("**/api/requests/*", lambda route: route.abort())
    page.locator("#answer").click()
    expect(page.locator("#progress-text")).to_contain_text("connection is lost")
    page.unroute_all(behavior="ignoreErrors")
    page.reload()
    expect(page.locator(".big-figure")).to_be_visible()
    assert charges(server, token) == 1

    page.evaluate("""sessionStorage.setItem("tacit.pending", '{"id": "00000000never"}')""")
    page.reload()
    expect(page.locator("#answer-note")).to_contain_text("nothing was charged")


def test_a_request_that_waits_can_be_cancelled(visit: Visit, server: Serving) -> None:
    token = server.token("page-cancels")
    page = visit(token)
    explained(page, "SELECT count(*) AS n FROM visits WHERE age < 34")
    waits = {"state": "queued", "position": 3, "waiting": 4, "running": 2}
    ended = {"class": "ProgrammingError", "message": "the request was cancelled; nothing was charged", "hint": ""}
    held: list[Route] = []

    def stand_in(route: Route) -> None:
        if route.request.method == "POST":
            route.fulfill(status=202, json=waits)
        elif route.request.method == "GET":
            held.append(route)
        else:
            route.fulfill(json={**waits, "state": "cancelled"})
            held[0].fulfill(status=409, json={"error": ended})

    page.route("**/api/answer", stand_in)
    page.route("**/api/requests/*", stand_in)
    page.locator("#answer").click()
    expect(page.locator("#progress-text")).to_have_text("3rd in the queue; 2 running now.")
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("#answer-note")).to_contain_text("nothing was charged")
    expect(page.locator("#answer")).to_be_enabled()
    assert charges(server, token) == 0


def test_the_curator_sees_the_books(visit: Visit, server: Serving) -> None:
    server.json("POST", "/api/answer", server.token("page-books"), {"id": "page-books-1", "sql": ONE, "epsilon": 0.25})
    page = visit(server.token("page-curator", role="curator"))
    page.get_by_role("link", name="Ledger").click()
    expect(page.get_by_role("row").filter(has_text="page-books").filter(has_text="0.25")).to_have_count(1)
    page.get_by_role("button", name="Verify the ledger").click()
    expect(page.locator(".verified")).to_contain_text("Sound")
    page.get_by_role("link", name="Analysts").click()
    expect(page.get_by_role("meter", name="page-books: budget spent")).to_be_visible()
    expect(page.get_by_role("row").filter(has_text="page-curator")).to_contain_text("valid")


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 360)])
def test_everybody_can_use_it(visit: Visit, server: Serving, scheme: str, width: int) -> None:
    page = visit(width=width, color_scheme=scheme, reduced_motion="reduce")
    assert page.evaluate(CHECKS) == []
    page.get_by_label("Access token").fill(server.token(f"page-{scheme}", role="curator"))
    page.keyboard.press("Enter")
    page.locator("#sql").fill("SELECT count(agee) FROM visits")
    expect(page.locator(".problem")).to_be_visible()
    assert page.evaluate(CHECKS) == []
    explained(page, BATCH)
    page.locator("#answer").click()
    expect(page.locator("#answers .card")).to_have_count(4)
    expect(page.locator("#answer")).to_have_text("Answer, free")
    assert page.evaluate(CHECKS) == []
    for view in ("History", "Ledger", "Analysts"):
        page.get_by_role("link", name=view, exact=True).click()
        expect(page.get_by_role("meter").first).to_be_visible()
        assert page.evaluate(CHECKS) == [], view
    page.get_by_role("link", name="Ask", exact=True).click()
    assert page.evaluate("getComputedStyle(document.querySelector('.pulse')).animationName") == "none"
    page.get_by_role("button", name="Theme: auto").click()
    page.get_by_role("button", name="Theme: light").click()
    assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "dark"


def test_the_keyboard_reaches_everything_in_order(visit: Visit, server: Serving) -> None:
    page = visit(server.token("page-keys"))
    explained(page, ONE)
    wanted = page.evaluate(
        "[...document.querySelectorAll('a, button, input, select, textarea, summary, [tabindex=\"0\"]')]"
        ".filter((n) => n.checkVisibility() && !n.disabled && n.type !== 'hidden').map((n, i) => (n.dataset.at = i))"
    )
    page.evaluate("document.activeElement.blur(); getSelection().removeAllRanges(); scrollTo(0, 0)")
    page.evaluate("document.querySelector('.skip').focus()")
    reached = []
    for _ in wanted:
        at, outline = page.evaluate(
            "((own) => [Number(own.dataset.at), [own, own.closest('.editor')]"
            ".some((n) => n && getComputedStyle(n).outlineStyle !== 'none')])(document.activeElement)"
        )
        reached.append(at)
        assert outline, page.evaluate("document.activeElement.outerHTML")
        page.keyboard.press("Tab")
    assert reached == wanted


def test_notes_stand_below_their_table(visit: Visit, server: Serving) -> None:
    page = visit(server.token("page-notes"), width=1100)
    explained(page, "SELECT state, sex, count(*) AS n, avg(cost) AS mean_cost FROM visits GROUP BY state, sex")
    page.get_by_label("ε for this batch").fill("0.01")
    page.keyboard.press("Tab")
    expect(page.locator("#answer")).to_have_text("Answer for ε 0.01")
    page.locator("#answer").click()
    expect(page.locator(".footnotes li").first).to_contain_text("rows")
    marks = page.locator("td.note").all_inner_texts()
    assert any("1" in mark for mark in marks)
    fits = "() => [...document.querySelectorAll('.answer .scroll')].every((e) => e.scrollWidth <= e.clientWidth)"
    assert page.evaluate(fits)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
