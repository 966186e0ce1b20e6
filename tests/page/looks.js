// SPDX-License-Identifier: Apache-2.0
// What is wrong with how the page looks: a list of texts, empty if nothing is.
(() => {
  const wrong = [];
  const page = document.documentElement;
  const name = (element) => `${element.tagName}.${element.getAttribute('class') || ''} "${element.textContent.trim().slice(0, 60)}"`;
  const note = (what, element) => { if (wrong.length < 30) wrong.push(`${what}: ${name(element)}`); };
  document.querySelectorAll('details').forEach((fold) => { fold.open = true; });
  if (page.scrollWidth > page.clientWidth) wrong.push(`the page is ${page.scrollWidth} wide in ${page.clientWidth}`);

  for (const element of document.querySelectorAll('body *')) {
    if (element.closest('svg') || element.closest('.scroll, .all')) continue;
    const box = element.getBoundingClientRect();
    if (box.width > 0 && (box.right > page.clientWidth + 1 || box.left < -1)) note('beyond the window', element);
  }

  const apart = (a, b) => a.right <= b.left + 1 || b.right <= a.left + 1 || a.bottom <= b.top + 2 || b.bottom <= a.top + 2;
  for (const picture of document.querySelectorAll('.plot > svg')) {
    const frame = picture.getBoundingClientRect();
    const texts = [...picture.querySelectorAll('text')].map((text) => [text, text.getBoundingClientRect()]);
    for (const [text, box] of texts) {
      if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.bottom > frame.bottom + 1) note('beyond its plot', text);
    }
    for (let i = 0; i < texts.length; ++i) {
      for (let j = i + 1; j < texts.length; ++j) {
        if (!apart(texts[i][1], texts[j][1])) note(`over ${name(texts[i][0])}`, texts[j][0]);
      }
    }
    if (!picture.querySelector('title') || !picture.querySelector('desc')) note('no title or description', picture);
  }

  // Contrast of text with what it stands on: WCAG 2.2, 1.4.3.
  const parse = (color) => (color.match(/[\d.]+/g) || []).map(Number);
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const backdrop = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const color = parse(getComputedStyle(at).backgroundColor);
      if (color.length === 3 || color[3] === 1) return color.slice(0, 3);
    }
    return [255, 255, 255];
  };
  const seen = new Set();
  for (const element of document.querySelectorAll('body *')) {
    if (![...element.childNodes].some((child) => child.nodeType === 3 && child.data.trim())) continue;
    const style = getComputedStyle(element);
    const drawn = element.closest('svg');
    if (element.matches('title, desc, defs *')) continue;
    const front = parse(drawn ? style.fill : style.color).slice(0, 3);
    const back = backdrop(drawn ? drawn.parentElement : element);
    const pair = `${front} on ${back}`;
    if (seen.has(pair)) continue;
    seen.add(pair);
    const [high, low] = [luminance(front), luminance(back)].sort((a, b) => b - a);
    if ((high + 0.05) / (low + 0.05) < 4.5) note(`contrast of ${pair}`, element);
  }
  if (seen.size < 4) wrong.push('no text was found to look at');

  for (const table of document.querySelectorAll('table')) {
    if (!table.caption || !table.querySelector('th[scope=col]')) note('no caption or headings', table);
  }
  const ids = [...document.querySelectorAll('[id]')].map((element) => element.id);
  if (new Set(ids).size !== ids.length) wrong.push('an id is there twice');
  for (const link of document.querySelectorAll('a[href^="#"]')) {
    if (link.hash !== '#top' && !document.getElementById(link.hash.slice(1))) note('leads nowhere', link);
  }
  if (document.querySelector('script, iframe, img, object')) wrong.push('something that is not text or SVG');
  return wrong;
})()
