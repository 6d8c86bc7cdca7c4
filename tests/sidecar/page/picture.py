"""Take the picture of the page that the README shows: `python -m tests.sidecar.page.picture FILE`.

It needs a Chromium. The model is the demo's, at the pace at which the demo shows it.
"""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import aclosing
from pathlib import Path
from tempfile import TemporaryDirectory

from prometheus_client import CollectorRegistry

from abridge.sidecar.app import create_app
from abridge.sidecar.demo.model import MODEL_NAME, scripted_model
from abridge.sidecar.demo.script import QUESTION
from abridge.sidecar.demo.show import NORMAL_PAUSE
from tests.sidecar.page.asking import RECORDED, ask_question
from tests.sidecar.page.chromium import Chromium, new_tab
from tests.support.deployments import settings_for
from tests.support.servers import serve

WIDTH, MARGIN = 1000, 24


async def take(browser: str) -> bytes:
    async with serve(scripted_model(NORMAL_PAUSE)) as model:
        upstreams = [{"base_url": f"{model}/v1"}]
        settings = settings_for(upstreams=upstreams, server={"page": True})
        app = create_app(settings, registry=CollectorRegistry())
        async with aclosing(app), serve(app) as url, new_tab(browser) as tab:
            await tab.size(WIDTH, 1040)
            await tab.prefer(color_scheme="light")
            await tab.open(f"{url}/abridge")
            await tab.until(f"document.querySelector('#model').value === {json.dumps(MODEL_NAME)}")
            await ask_question(tab, QUESTION)
            await tab.until(RECORDED)
            await tab.get("new Promise((done) => setTimeout(done, 500))")
            answer = "document.querySelector('#answer-box').getBoundingClientRect()"
            height = round(await tab.get(f"{answer}.bottom + scrollY")) + MARGIN
            return await tab.picture(WIDTH, height)


def main() -> None:
    with TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as folder:
        browser = Chromium(folder)
        try:
            Path(sys.argv[1]).write_bytes(asyncio.run(take(browser.address())))
        finally:
            browser.end()


if __name__ == "__main__":
    main()
