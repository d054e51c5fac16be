// What a reader with other eyes or hands needs, computed on the page as it stands. Gives a list of complaints.
() => {
  const complaints = [];
  const visible = (node) => node.checkVisibility({ visibilityProperty: true, opacityProperty: true });
  const rgba = (text) => {
    const [r, g, b, a = 1] = text.match(/[\d.]+/g).map(Number);
    return [r, g, b, a];
  };
  const over = ([r, g, b, a], [R, G, B]) => [r * a + R * (1 - a), g * a + G * (1 - a), b * a + B * (1 - a), 1];
  const behind = (node) => {
    const layers = [];
    for (let at = node; at; at = at.parentElement) {
      const shade = at.querySelector?.(":scope > rect");
      if (at.classList.contains("heat") && shade) {
        const style = getComputedStyle(shade);
        const [r, g, b] = rgba(style.fill);
        layers.push([r, g, b, Number(style.fillOpacity)]);
      }
      layers.push(rgba(getComputedStyle(at).backgroundColor));
      if (layers.at(-1)[3] === 1) break;
    }
    return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255, 1]);
  };
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b]
      .map((v) => v / 255)
      .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (
      !walker.currentNode.data.trim() ||
      !visible(node) ||
      node.closest("textarea, select, title, .unseen, .skip, noscript")
    )
      continue;
    const style = getComputedStyle(node);
    const ground = behind(node);
    const ink = over(rgba(node.namespaceURI.endsWith("svg") ? style.fill : style.color), ground);
    const [a, b] = [light(ink), light(ground)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) complaints.push(`contrast ${ratio.toFixed(2)}: ${walker.currentNode.data.trim().slice(0, 40)}`);
  }
  const labelled = (node) =>
    node.labels?.length ||
    node.getAttribute("aria-label") ||
    node.getAttribute("aria-labelledby") ||
    node.textContent.trim();
  for (const node of document.querySelectorAll(
    "button, a, input, select, textarea, [role=meter], [role=region], [role=img], nav, summary",
  )) {
    if (visible(node) && !labelled(node)) complaints.push(`no name: ${node.outerHTML.slice(0, 80)}`);
  }
  const ids = [...document.querySelectorAll("[id]")].map((node) => node.id);
  ids.filter((id, i) => ids.indexOf(id) !== i).forEach((id) => complaints.push(`id twice: ${id}`));
  for (const node of document.querySelectorAll("[aria-describedby], [aria-labelledby]")) {
    for (const name of ["aria-describedby", "aria-labelledby"]) {
      for (const id of (node.getAttribute(name) ?? "").split(/\s+/).filter(Boolean)) {
        if (!document.getElementById(id)) complaints.push(`${name} of nothing: ${id}`);
      }
    }
  }
  if ([...document.querySelectorAll("main")].filter(visible).length !== 1) complaints.push("not one main");
  if ([...document.querySelectorAll("h1")].filter(visible).length !== 1) complaints.push("not one h1");
  const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  if (wide > 0) complaints.push(`${wide} pixels too wide`);
  return complaints;
};
