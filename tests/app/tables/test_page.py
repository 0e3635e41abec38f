"""The page of a comparison: complete, self-contained, safe, and legible in a real browser."""

import re
from datetime import date
from html import unescape

import numpy as np
import pytest
from markupsafe import escape

from decidewise.app.tables.comparison import compare_samples
from decidewise.app.tables.headline import fit_command
from decidewise.app.tables.page import render_comparison
from decidewise.app.tables.samples import TableSamples
from decidewise.problems import TopK

HOSTILE = '</script><script>alert("x")</script><img src=x onerror=alert(1)>{{ 7 * 7 }}'


def make(names, title="day", unit="EUR", *, times=True, features=("wind", "load")):
    rng = np.random.default_rng(4)
    n, d = 56, len(names)
    x = rng.normal(size=(n, 2))
    costs = np.exp(x @ rng.normal(size=(2, d)) * 0.7 + rng.normal(0, 0.1, (n, d)))
    days = np.datetime64("2026-01-01T00:00:00.000000") + np.arange(n) * np.timedelta64(1, "D")
    forecast = {f"{features[0]} {j}": costs[:, j] * rng.uniform(0.1, 1.9, n) for j in range(d)}
    return TableSamples(
        {features[0]: x[:, 0], features[1]: x[:, 1], **forecast},
        per_item=False,
        cost_names=tuple(names),
        keys=days,
        title=title,
        costs=costs,
        times=days if times else None,
        problem=TopK(d, 1, sense="min"),
        forecast=tuple(forecast),
        unit=unit,
    )


COMMAND = {
    "data": "my table.csv",
    "problem": "problem.toml",
    "given": {"costs": ["price_*"], "item_order": "b,a,c", "time": None, "shuffle": True, "rows": None},
}


@pytest.fixture(scope="module")
def result():
    return compare_samples(make(("a", "b", "c")), test=0.5)


@pytest.fixture(scope="module")
def page(result):
    return render_comparison(result, COMMAND)


@pytest.fixture
def opened(browser, page, tmp_path):
    (tmp_path / "compare.html").write_text(page, encoding="utf-8")
    browser.call("Emulation.clearDeviceMetricsOverride")
    browser.open(tmp_path / "compare.html")
    return browser


def test_it_says_all_that_a_manager_asks_for(page, result):
    text = re.sub(r"\s+", " ", re.sub(r"<(script|style).*?</\1>|<[^>]+>", " ", page, flags=re.DOTALL))
    for words in (
        "per day against your forecast: ",
        "of the avoidable cost.",
        "Worth changing",
        "What you pay per day, EUR",
        "now, with your forecast",
        "with perfect foresight",
        " per year",
        "What to do next",
        "The best and the worst day",
        date.today().isoformat(),
        "Which model decides best",
        "Regret over time",
        "Where the savings come from",
        "By day of the week",
        "Predicted against realised costs",
        "The state of the data",
        "drift in the features",
        f"{result.choice.search.n_solves_:,} solver calls",
        "How to use the advised model",
        "The choice averages ",
        "decidewise fit &#39;my table.csv&#39; --problem problem.toml --costs &#39;price_*&#39; ",
        "--item-order b,a,c --shuffle --model ",
        "decidewise inspect model.dw",
        "load_model(&#34;model.dw&#34;)",
    ):
        assert words in text, words
    for name in result.choice.search.cv_results_["candidate"]:
        assert str(escape(name)) in text
    commands = re.findall(r"<pre[^>]*><code>(.*?)</code></pre>", page, flags=re.DOTALL)
    assert [len(lines.splitlines()) for lines in commands] == [1, 2, 3]
    assert unescape(commands[0]) == fit_command(result.chosen, COMMAND)


def test_nothing_is_fetched(page):
    assert set(re.findall(r"""https?://[^\s"'<>]+""", page)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:)?//|@import|url\(|<link|<script src""", page)


def test_it_can_be_read_aloud(page):
    assert page.count("<h1>") == 1
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]+)"', page)) <= set(ids)
    assert page.count("<figure") == page.count("<figcaption>") == 3
    assert not re.search(r"<th(?![^>]*scope)[ >]", page)
    for region in re.findall(r'<div class="scroll"[^>]*>', page):
        assert 'tabindex="0"' in region
        assert "aria-label" in region


def test_it_opens_without_a_complaint_and_draws_its_charts(opened):
    assert opened.complaints() == []
    drawn = opened.run("[...document.querySelectorAll('.panel > svg')].map(s => s.querySelectorAll('.mark').length)")
    assert len(drawn) == 5  # two rows, over time, and predictions of the forecast and of the chosen model
    assert drawn[:2] == [3, 3]  # one of three items each: forecast, choice and perfect foresight
    assert min(drawn[2:]) > 3
    box = "document.querySelector('.toggles input[data-method=\"forecast\"]')"
    marks = "document.querySelectorAll('#over_time [data-method=\"forecast\"]').length"
    assert opened.run(marks) == 1
    opened.run(f"{box}.click()")
    assert opened.run(marks) == 0
    assert opened.complaints() == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone_and_is_legible_in_both_schemes(opened, scheme):
    opened.call("Emulation.setDeviceMetricsOverride", width=390, height=844, deviceScaleFactor=1, mobile=True)
    opened.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    opened.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")
    assert opened.run("document.documentElement.scrollWidth") <= 390
    ground = opened.run("getComputedStyle(document.documentElement).backgroundColor")
    words = "[...document.querySelectorAll('h1, .lead, .verdict, td, th, .look, .fine, figcaption, code, summary')]"
    colors = set(opened.run(f"{words}.map(node => getComputedStyle(node).color)"))
    assert len(colors) > 2
    assert all(contrast(color, ground) >= 4.5 for color in colors), [(c, contrast(c, ground)) for c in colors]
    opened.call("Emulation.clearDeviceMetricsOverride")
    opened.call("Emulation.setEmulatedMedia", features=[])


def test_it_prints_on_white_with_a_legend_and_without_switches(opened):
    dark = [{"name": "prefers-color-scheme", "value": "dark"}]
    opened.call("Emulation.setEmulatedMedia", media="print", features=dark)
    assert opened.run("getComputedStyle(document.documentElement).backgroundColor") == "rgb(255, 255, 255)"
    assert opened.run("getComputedStyle(document.querySelector('.fill')).printColorAdjust") == "exact"
    shown = "[...document.querySelectorAll('.toggles {}')].filter(node => node.getClientRects().length).length"
    assert opened.run(shown.format("label")) > 1
    assert opened.run(shown.format("input")) == opened.run(shown.format("button")) == 0
    opened.call("Emulation.setEmulatedMedia", media="", features=[])


def test_hostile_names_stay_text(browser, tmp_path):
    samples = make(("a", HOSTILE, "c"), title=HOSTILE, unit=HOSTILE, features=(HOSTILE, "b"))
    command = {"data": HOSTILE, "problem": HOSTILE, "given": {"costs": [HOSTILE]}}
    page = render_comparison(compare_samples(samples, test=0.5), command)
    assert "<script>alert" not in page
    assert "<img" not in page
    (tmp_path / "compare.html").write_text(page, encoding="utf-8")
    browser.open(tmp_path / "compare.html")
    assert browser.complaints() == []
    assert browser.run("document.images.length") == 0


def test_without_times_there_is_no_chart_of_them():
    page = render_comparison(compare_samples(make(("a", "b", "c"), "row", "", times=False), test=0.5), COMMAND)
    assert "Regret over time" not in page
    assert "per row" in page


def contrast(one, other):
    """Return the WCAG contrast ratio of two colours written as `rgb(r, g, b)`."""

    def luminance(color):
        channels = [float(part) / 255 for part in re.findall(r"[\d.]+", color)[:3]]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)
