// Every two seconds the page's tables are taken anew from the server; without this script the page is read once.
"use strict";
(() => {
  const told = document.getElementById("told");
  const pause = document.getElementById("pause");
  let paused = false;
  document.getElementById("updates").hidden = false;
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.setAttribute("aria-pressed", String(paused));
    told.textContent = paused ? "paused" : "";
  });
  const update = async () => {
    if (paused || document.hidden) return;
    try {
      const answer = await fetch("/", { cache: "no-store" });
      if (!answer.ok) throw new Error(String(answer.status));
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const place of ["#state", ".facts", "tbody"]) {
        const old = document.querySelector(place);
        const next = fresh.querySelector(place);
        if (old.contains(document.activeElement) && old.textContent === next.textContent) continue;
        const focused = old.contains(document.activeElement) ? document.activeElement.id : "";
        old.replaceWith(document.adoptNode(next));
        if (focused) document.getElementById(focused)?.focus();
      }
      if (told.textContent) told.textContent = "";
    } catch {
      told.textContent = "the server does not answer";
    }
  };
  setInterval(update, 2000);
})();
