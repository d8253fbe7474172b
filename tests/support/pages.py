"""What is asked of the pages that we open in a browser."""

OUTSIDE = """[...document.querySelectorAll("figure > div, figcaption, caption, td, th")]
  .filter((one) => one.checkVisibility() && one.getClientRects().length)
  .map((one) => [one.textContent.slice(0, 40), one.getBoundingClientRect()])
  .filter(([, {left, right}]) => left < 0 || right > innerWidth).map(([text]) => text)"""
