// Keeps a page up to date: the server says that something changed, the page is fetched again, and its parts are replaced.
// The server has drawn and escaped every part; nothing here makes markup out of text.
"use strict";
(() => {
  const source = document.body.dataset.live;
  const sign = document.getElementById("live");
  const EVERY_MS = 2000;
  let last = 0;
  let timer = 0;
  let isBusy = false;

  const isUsed = (part) =>
    part.contains(document.activeElement) && document.activeElement !== document.body &&
    document.activeElement.matches("input, select, textarea");

  const keepOpen = (from, to) => {
    const before = [...from.querySelectorAll("details")];
    [...to.querySelectorAll("details")].forEach((one, at) => { if (before[at] && before[at].open) one.open = true; });
    const marked = new Set([...from.querySelectorAll("input:checked")].map((one) => one.value));
    to.querySelectorAll("input[type=checkbox]").forEach((one) => { one.checked = marked.has(one.value); });
  };

  const refresh = async () => {
    if (isBusy) return;
    isBusy = true;
    last = Date.now();
    try {
      const answer = await fetch(location.href, { credentials: "same-origin", cache: "no-store" });
      if (!answer.ok) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      document.querySelectorAll("[data-part]").forEach((part) => {
        const fresh = page.querySelector(`[data-part="${part.dataset.part}"]`);
        if (!fresh || isUsed(part) || part.isEqualNode(fresh)) return;
        keepOpen(part, fresh);
        const places = [...part.querySelectorAll(".scroll")].map((one) => one.scrollLeft);
        const node = document.importNode(fresh, true);
        part.replaceWith(node);
        node.querySelectorAll(".scroll").forEach((one, at) => { one.scrollLeft = places[at] || 0; });
      });
      document.dispatchEvent(new Event("board:replaced"));
    } catch { /* the server is gone for now; the stream reconnects by itself */ } finally {
      isBusy = false;
    }
  };

  const soon = () => {
    if (timer || document.hidden) return;
    timer = setTimeout(() => { timer = 0; refresh(); }, Math.max(0, EVERY_MS - (Date.now() - last)));
  };

  if (source && "EventSource" in window) {
    const stream = new EventSource(source);
    stream.addEventListener("open", () => { sign.hidden = false; sign.classList.remove("off"); });
    stream.addEventListener("error", () => { sign.classList.add("off"); });
    stream.addEventListener("changed", soon);
    document.addEventListener("visibilitychange", () => { if (!document.hidden) soon(); });
    addEventListener("pagehide", () => stream.close());
  }

  // Compare: the boxes that are ticked, as one word of the address.
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (!(form instanceof HTMLFormElement) || !("compare" in form.dataset)) return;
    event.preventDefault();
    const chosen = [...form.querySelectorAll("input:checked")].map((one) => one.value);
    location.assign("/compare" + (chosen.length ? "?runs=" + chosen.join(",") : ""));
  });

  // Keys: `/` to search, `[` and `]` to the next page of a run.
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea")) return;
    if (event.key === "/") {
      const field = document.querySelector("[data-search]");
      if (field) { event.preventDefault(); field.focus(); }
    } else if (event.key === "[" || event.key === "]") {
      const tabs = [...document.querySelectorAll(".tabs a")];
      const at = tabs.findIndex((one) => one.hasAttribute("aria-current"));
      const next = tabs[at + (event.key === "]" ? 1 : -1)];
      if (at >= 0 && next) location.assign(next.href);
    }
  });
  const current = document.querySelector(".tabs [aria-current]");
  if (current) current.scrollIntoView({ block: "nearest", inline: "center" });
})();
