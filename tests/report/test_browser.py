"""Pages of reports in a real browser: nothing is said on its console, and lines are coloured."""

from __future__ import annotations

import re
import shutil
import subprocess
import time

import pytest

import dyncomp
from tests.report.page_programs import arguments, program

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="there is no Chromium"),
]
QUIET = "--headless --no-sandbox --disable-gpu --disable-background-networking --disable-component-update"
# Appended to a copy of the page: it tells what was rendered.
PROBE = """\
<script>
window.addEventListener("load", () => {
  const colour = line => getComputedStyle(line).borderLeftColor;
  const found = {};
  for (const state of ["graph", "break", "native", "followed", "unreached"]) {
    const line = document.querySelector(".source .line." + state);
    found[state] = line === null ? "" : colour(line) + "|" + getComputedStyle(line).backgroundColor;
  }
  const picture = document.querySelector(".picture svg").getBoundingClientRect();
  found.picture = Math.round(picture.width) + "x" + Math.round(picture.height);
  found.wide = String(document.documentElement.scrollWidth > window.innerWidth);
  found.paper = getComputedStyle(document.body).backgroundColor;
  document.documentElement.dataset.found = JSON.stringify(found);
});
</script>
"""


def browse(page, profile, *more):
    command = [BROWSER, *QUIET.split(), "--disable-sync", "--enable-logging=stderr", "--v=0"]
    command += [f"--user-data-dir={profile}", "--window-size=1280,1000", *more, "--dump-dom", page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout, [line for line in done.stderr.splitlines() if ":CONSOLE" in line]


@pytest.fixture(scope="module")
def text():
    return dyncomp.explain(program)(*arguments()).html()


def probed(text, tmp_path, *more):
    import html
    import json

    page = tmp_path / "probed.html"
    page.write_text(text.replace("</body>", PROBE + "</body>"), encoding="utf-8")
    dom, console = browse(page, tmp_path / "profile", *more)
    return json.loads(html.unescape(re.search(r'data-found="([^"]*)"', dom)[1])), console


def test_it_renders_and_lines_are_coloured(text, tmp_path):
    found, console = probed(text, tmp_path)
    assert not console
    colours = [found[state] for state in ("graph", "break", "native", "followed", "unreached")]
    assert all(colours) and len(set(colours)) == len(colours)
    width, height = map(int, found["picture"].split("x"))
    assert width > 400 and height > 150
    assert found["wide"] == "false"
    assert found["paper"] == "rgb(255, 255, 255)"


def test_dark(text, tmp_path):
    found, console = probed(text, tmp_path, "--force-dark-mode")
    assert not console and found["paper"] == "rgb(18, 22, 27)"


def test_a_model_of_twelve_layers(tmp_path):
    """Less than 10 MB, and it opens in less than two seconds beyond an empty page."""
    torch = pytest.importorskip("torch")
    layer = torch.nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True, dropout=0.0)
    model = torch.nn.TransformerEncoder(layer, 12, enable_nested_tensor=False).eval()
    x = torch.randn(2, 64, 256)
    with torch.no_grad():
        report = dyncomp.explain(model)(x)
        page = report.save(tmp_path / "model.html")
    assert len(str(report).splitlines()) <= 60
    assert page.stat().st_size < 10e6
    empty = tmp_path / "empty.html"
    empty.write_text("<!doctype html><title>empty</title>", encoding="utf-8")
    browse(empty, tmp_path / "profile")  # makes the profile
    start = time.perf_counter()
    browse(empty, tmp_path / "profile")
    between = time.perf_counter()
    _, console = browse(page, tmp_path / "profile")
    end = time.perf_counter()
    assert not console
    assert (end - between) - (between - start) < 2.0
