"""Pictures of pages: made small for the guide, and compared with those that the guide has."""

import base64
import os
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "docs" / "guides" / "pictures"
SIZE = {"width": 1200, "height": 760}
MOST_BYTES = 60_000
MOST_DIFFERENT = 0.15
"""The same page differs by 0.01, with other fonts by more, and another page by over 0.7."""
_SMALLER = """async png => {
  const image = await createImageBitmap(await (await fetch(`data:image/png;base64,${png}`)).blob());
  const canvas = new OffscreenCanvas(image.width, image.height);
  canvas.getContext('2d').drawImage(image, 0, 0);
  const blob = await canvas.convertToBlob({type: 'image/webp', quality: 0.8});
  const bytes = new Uint8Array(await blob.arrayBuffer());
  return btoa(Array.from(bytes, byte => String.fromCharCode(byte)).join(''));
}"""
_DIFFERENCE = """async pictures => {
  const [width, height] = [60, 38];
  const greys = await Promise.all(pictures.map(async picture => {
    const blob = await (await fetch(`data:image/webp;base64,${picture}`)).blob();
    const image = await createImageBitmap(blob, {resizeWidth: width, resizeHeight: height,
                                                resizeQuality: 'high'});
    const context = new OffscreenCanvas(width, height).getContext('2d');
    context.drawImage(image, 0, 0);
    const {data} = context.getImageData(0, 0, width, height);
    return Array.from({length: width * height}, (_, at) =>
      (data[4 * at] + data[4 * at + 1] + data[4 * at + 2]) / 765);
  }));
  const [first, second] = greys;
  const sum = first.reduce((all, grey, at) => all + Math.abs(grey - second[at]), 0);
  // Pages are mostly empty: what differs is compared with what is drawn.
  const mean = first.reduce((all, grey) => all + grey, 0) / first.length;
  const drawn = first.reduce((all, grey) => all + Math.abs(grey - mean), 0);
  return sum / Math.max(drawn, first.length / 100);
}"""


def check(page: Any, name: str) -> None:
    """Compare a page with its picture; `CARAWAY_WRITE_DOCS=1` writes the picture.

    Raises:
        AssertionError: they differ by more than texts do.
    """
    canvas = page.context.browser.new_context()
    blank = canvas.new_page()
    png = page.screenshot(animations="disabled", caret="hide")
    present = blank.evaluate(_SMALLER, base64.b64encode(png).decode())
    content = base64.b64decode(present)
    assert len(content) < MOST_BYTES, f"{name} has {len(content)} bytes"
    file = FOLDER / f"{name}.webp"
    if os.environ.get("CARAWAY_WRITE_DOCS"):
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(content)
    stored = base64.b64encode(file.read_bytes()).decode()
    found = blank.evaluate(_DIFFERENCE, [stored, present])
    canvas.close()
    assert found < MOST_DIFFERENT, f"{name} differs by {found:.3f}: CARAWAY_WRITE_DOCS=1 writes it"
