"""The page in a real browser, opened from disk."""

import pyarrow as pa
import pytest

from decidewise_bench.report import benchmark_report, write_report

VISIBLE = """[...document.querySelectorAll('.panel svg [data-method="WISE"]')].length"""


@pytest.fixture
def page(browser, report):
    browser.open(report)
    return browser


def switch(page, kind, name):
    page.run(f"""document.querySelector('.toggles input[data-{kind}="{name}"]').click()""")


def test_it_opens_without_a_complaint_and_fetches_nothing(page):
    assert page.run("document.title").endswith("of 264 cells reproduced")
    assert page.complaints() == []


def test_every_figure_is_drawn(page):
    drawn = page.run(
        "[...document.querySelectorAll('figure')].map(f => [f.id, f.querySelectorAll('.panel').length, "
        "[...f.querySelectorAll('.panel')].every(p => p.querySelectorAll('svg path, svg rect').length > 3)])"
    )
    assert len(drawn) == 10  # seven charts of the one problem that was run, and three drawings
    assert all(panels and full for _, panels, full in drawn), drawn
    widths = page.run("[...document.querySelectorAll('.panel svg')].map(s => s.getBoundingClientRect().width)")
    assert min(widths) > 150


def test_a_method_is_switched_off_and_on_in_all_charts(page):
    before = page.run(VISIBLE)
    assert before > 10
    switch(page, "method", "WISE")
    assert page.run(VISIBLE) == 0
    assert page.run("document.querySelectorAll('.panel svg [data-method=\"MSE\"]').length") > 0
    switch(page, "method", "WISE")
    assert page.run(VISIBLE) == before
    assert page.complaints() == []


def test_a_layer_is_switched_off(page):
    switch(page, "layer", "published")
    assert page.run("document.querySelectorAll('.panel [data-layer=\"published\"]').length") == 0
    assert page.run(VISIBLE) > 0


def test_all_methods_at_once(page):
    before = page.run(VISIBLE)
    page.run("document.querySelector('.toggles button[value=none]').click()")
    assert page.run("document.querySelectorAll('.panel .mark').length") == 0
    page.run("document.querySelector('.toggles button[value=all]').click()")
    assert page.run(VISIBLE) == before


def test_everything_can_be_switched_off(page):
    page.run("document.querySelectorAll('.toggles input').forEach(box => box.click())")
    assert page.run("document.querySelector('.panel svg').textContent") == "nothing is switched on"
    assert page.complaints() == []


def test_toggles_work_from_the_keyboard(page):
    page.run("""document.querySelector('.toggles input[data-method="WISE"]').focus()""")
    for kind in ("keyDown", "keyUp"):
        page.call("Input.dispatchKeyEvent", type=kind, key=" ", code="Space", text=" ", windowsVirtualKeyCode=32)
    assert page.run(VISIBLE) == 0


def test_pointing_at_a_mark_shows_its_numbers(page):
    where = 'document.querySelector(\'#regret_samples_shortest_path [data-method="WISE"][data-layer="adam"] .mark\')'
    page.run(f"{where}.scrollIntoView({{block: 'center'}})")
    x, y = page.run(f"(b => [b.x + b.width / 2, b.y + b.height / 2])({where}.getBoundingClientRect())")
    page.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    assert page.run("document.getElementById('tip').hidden") is False
    assert page.run("document.getElementById('tip').textContent").startswith("WISE · degree 1, n = 400\nours ")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone_and_is_legible_in_both_schemes(page, scheme):
    page.call("Emulation.setDeviceMetricsOverride", width=390, height=844, deviceScaleFactor=1, mobile=True)
    page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    page.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")
    assert page.run("document.documentElement.scrollWidth") <= 390
    assert (
        max(page.run("[...document.querySelectorAll('.panel svg')].map(s => s.getBoundingClientRect().right)")) <= 390
    )
    ground = page.run("getComputedStyle(document.documentElement).backgroundColor")
    colors = page.run(
        "['--c0', '--c1', '--c2', '--c3', '--c4', '--c5', '--c6', '--text', '--quiet', '--good', '--bad'].map(name => {"
        "const probe = document.createElement('i'); probe.style.color = `var(${name})`; document.body.append(probe);"
        "const color = getComputedStyle(probe).color; probe.remove(); return color})"
    )
    assert all(contrast(color, ground) >= 3 for color in colors), [(c, contrast(c, ground)) for c in colors]
    page.call("Emulation.clearDeviceMetricsOverride")


def test_the_contest_is_drawn_and_switched(browser, contest_report):
    browser.open(contest_report)
    panels = "document.querySelectorAll('#contest_better_shortest_path .panel').length"
    marks = "document.querySelectorAll('#contest_better_shortest_path [data-method=\"WISE CV\"] .mark').length"
    assert (browser.run(panels), browser.run(marks)) == (5, 20)
    switch(browser, "method", "WISE CV")
    assert browser.run(marks) == 0
    switch(browser, "method", "WISE CV")
    assert browser.run("document.querySelectorAll('#better .results tbody tr:not(.group)').length") == 20
    assert browser.complaints() == []


def test_at_one_number_of_samples_methods_are_named_below_the_axis(browser, row, tmp_path):
    names = ["a method with a long name", "WISE", "SPO+"]
    table = pa.Table.from_pylist([row(plan="mine", degree=None, floor=None, method=name) for name in names])
    browser.open(write_report(benchmark_report(table), tmp_path))
    assert browser.run("document.querySelectorAll('figure').length") == 3  # methods, seconds, wins: no drawings
    labels = "[...document.querySelectorAll('#regret_method_mine_knapsack .axis text')]"
    assert browser.run(f"{labels}.map(text => text.textContent)")[-5:-2] == names
    assert browser.run(f"Math.min(...{labels}.map(text => text.getBoundingClientRect().left))") >= 0
    assert browser.complaints() == []


def contrast(one, other):
    """Return the WCAG contrast ratio of two colours written as `rgb(r, g, b)`."""

    def luminance(color):
        channels = [int(part) / 255 for part in color.removeprefix("rgb(").removesuffix(")").split(",")]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)
