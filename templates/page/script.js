// What makes the page live: it asks for itself again when something has happened and changes what is different, sends what people
// ask for, and listens to a few keys. Without it the page is what the server made.
"use strict";
(() => {
  const root = document.documentElement;
  root.classList.add("js");
  const find = (query, from = document) => from.querySelector(query);
  const all = (query, from = document) => [...from.querySelectorAll(query)];

  // The token: asked once, kept for this tab. Where looking needs one as well it goes along as a cookie.
  const KEPT = "dirigent-token";
  let kept = null;
  try { kept = sessionStorage.getItem(KEPT); } catch { /* kept for this page alone */ }
  const keep = (token) => {
    kept = token;
    try { token ? sessionStorage.setItem(KEPT, token) : sessionStorage.removeItem(KEPT); } catch { /* likewise */ }
  };

  const answer = (dialog) => new Promise((done) => {
    dialog.returnValue = "";
    dialog.addEventListener("close", () => done(dialog.returnValue === "yes"), { once: true });
    dialog.showModal();
  });

  async function askForToken(why) {
    const dialog = find("#ask"), field = find("input[name=token]", dialog);
    if (why) find("#ask-why", dialog).textContent = why;
    field.value = "";
    const yes = await answer(dialog);
    const token = field.value.trim();
    field.value = "";
    if (yes && token) keep(token);
    return yes && token !== "";
  }

  let gone = 0;
  function tell(text, bad) {
    const told = find("#told");
    told.textContent = text;
    told.classList.toggle("bad", Boolean(bad));
    clearTimeout(gone);
    gone = setTimeout(() => { told.textContent = ""; }, bad ? 12000 : 6000);
  }

  // Sends what somebody asked for. Answers whether it was done.
  async function send(path, body) {
    if (!kept && !(await askForToken())) return false;
    for (;;) {
      let response;
      try {
        response = await fetch(path, {
          method: "POST", cache: "no-store", body: JSON.stringify(body),
          headers: { "Content-Type": "application/json", Authorization: `Bearer ${kept}` },
        });
      } catch {
        tell("The runner does not answer: nothing was done.", true);
        return false;
      }
      const said = await response.json().catch(() => ({}));
      if (response.ok) {
        tell(said.message || "Done.");
        return true;
      }
      if (response.status !== 401) {
        tell((said.error && said.error.message) || `It was refused (${response.status}).`, true);
        return false;
      }
      keep(null);
      if (!(await askForToken("That token is not known here. Another one?"))) return false;
    }
  }

  async function ask(question) {
    const dialog = find("#sure");
    find("[data-question]", dialog).textContent = question;
    return answer(dialog);
  }

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button[data-post]");
    if (button) {
      if (button.dataset.sure && !(await ask(button.dataset.sure))) return;
      button.disabled = true;
      await send(button.dataset.post, JSON.parse(button.dataset.body || "{}"));
      button.disabled = false;
      refresh();
      return;
    }
    const opener = event.target.closest("[data-open]");
    if (opener) find(`#${opener.dataset.open}`).showModal();
    const diff = event.target.closest("a[data-diff]");
    if (diff && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
      event.preventDefault();
      showDiff(diff);
    }
  });

  document.addEventListener("submit", async (event) => {
    const form = event.target;
    if (!form.dataset.post) return;
    event.preventDefault();
    const body = {};
    for (const field of form.elements) {
      if (field.name) body[field.name] = field.type === "checkbox" ? field.checked : field.value;
    }
    const button = find("button", form);
    button.disabled = true;
    if (await send(form.dataset.post, body)) {
      form.reset();
      const pop = form.closest("details");
      if (pop) pop.open = false;
    }
    button.disabled = false;
    refresh();
  });

  // The diff of a ticket, in place, with the button that approves that very head.
  async function showDiff(link) {
    const here = link.closest("#ticket") && find("#diff");
    if (here) {
      here.scrollIntoView();
      find("summary, button", here)?.focus({ preventScroll: true });
      return;
    }
    const actions = link.closest(".actions"), open = find(".inline", actions);
    link.setAttribute("aria-expanded", String(!open));
    if (open) return open.remove();
    const page = await load(link.href);
    const diff = page && find("#diff", page);
    if (!diff) return location.assign(link.href);
    const receipt = find("#receipt", page), place = document.createElement("div");
    place.className = "inline";
    place.dataset.own = "";
    for (const part of [diff, receipt]) {
      if (!part) continue;
      for (const node of [part, ...all("[id]", part)]) node.removeAttribute("id");
      part.removeAttribute("data-part");
      place.append(document.importNode(part, true));
    }
    actions.append(place);
  }

  // ---- Live -------------------------------------------------------------------------------------------------------------------

  async function load(address) {
    try {
      const response = await fetch(address, { cache: "no-store", headers: { Accept: "text/html" } });
      if (!response.ok) return null;
      return new DOMParser().parseFromString(await response.text(), "text/html");
    } catch {
      return null;
    }
  }

  const keyOf = (node) => (node.nodeType === Node.ELEMENT_NODE ? node.dataset.key || node.id || "" : "");
  const isOwn = (node) => node.nodeType === Node.ELEMENT_NODE && node.dataset.own !== undefined;
  // What belongs to whoever looks: whether something is folded, or being sent.
  const THEIRS = new Set(["open", "disabled", "aria-expanded"]);

  // Makes `have` like `want`, and leaves alone what is the same: the focus stays, and so does what somebody is typing.
  function become(have, want) {
    if (have.isEqualNode(want)) return;
    if (have.nodeType !== want.nodeType || have.nodeName !== want.nodeName) {
      have.replaceWith(document.importNode(want, true));
      return;
    }
    if (have.nodeType !== Node.ELEMENT_NODE) {
      if (have.data !== want.data) have.data = want.data;
      return;
    }
    for (const { name, value } of want.attributes) {
      if (!THEIRS.has(name) && have.getAttribute(name) !== value) have.setAttribute(name, value);
    }
    for (const { name } of [...have.attributes]) {
      if (!THEIRS.has(name) && !want.hasAttribute(name)) have.removeAttribute(name);
    }
    if (have.matches("input, textarea")) return;
    const wanted = [...want.childNodes], keys = new Set(wanted.map(keyOf));
    for (const node of [...have.childNodes]) {
      if (keyOf(node) && !keys.has(keyOf(node)) && !isOwn(node)) node.remove();
    }
    const known = new Map([...have.children].map((node) => [keyOf(node), node]));
    let at = have.firstChild;
    for (const next of wanted) {
      while (at && isOwn(at)) at = at.nextSibling;
      const key = keyOf(next);
      let match = null;
      if (key) match = known.get(key) || null;
      else if (at && !keyOf(at) && at.nodeName === next.nodeName) match = at;
      if (!match) {
        const fresh = document.importNode(next, true);
        if (key && fresh.matches(".card, .need, .run")) fresh.classList.add("fresh");
        have.insertBefore(fresh, at);
        continue;
      }
      if (match === at) at = at.nextSibling;
      else have.insertBefore(match, at);
      become(match, next);
    }
    while (at) {
      const rest = at;
      at = at.nextSibling;
      if (!isOwn(rest)) rest.remove();
    }
  }

  let ahead = 0;
  const setClock = () => { ahead = Number(document.body.dataset.at) - Date.now(); };
  setClock();

  let under_way = false, again = false;
  async function refresh() {
    if (under_way) {
      again = true;
      return;
    }
    under_way = true;
    const page = await load(location.pathname + location.search);
    if (page && page.body.dataset.page === document.body.dataset.page) {
      // Another version of the program is there: its page needs its own script.
      if (find("script", page).getAttribute("src") !== find("head script").getAttribute("src")) return location.reload();
      take(page);
    }
    // Several things that happen at once are one.
    await new Promise((done) => setTimeout(done, 250));
    under_way = false;
    if (again) {
      again = false;
      refresh();
    }
  }

  function take(page) {
    const icon = find("link[rel=icon]"), other = find("link[rel=icon]", page).getAttribute("href");
    if (icon.getAttribute("href") !== other) icon.setAttribute("href", other);
    if (document.title !== page.title) document.title = page.title;
    document.body.dataset.at = page.body.dataset.at;
    setClock();
    // What is not on every page is taken with what is around it.
    const parts = (from) => all("[data-part]", from).map((part) => part.id).join();
    if (parts(document) === parts(page)) {
      for (const part of all("[data-part]", page)) become(document.getElementById(part.id), part);
    } else {
      for (const around of ["#main", "#global"]) become(find(around), find(around, page));
    }
    filter();
    tick();
    document.dispatchEvent(new CustomEvent("dirigent:shown"));
  }

  function state(name, words) {
    const link = find("[data-link]");
    if (!link || link.textContent === words) return;
    link.className = `link ${name}`;
    link.textContent = words;
  }

  let source = null, retry = 0;
  function listen() {
    if (source || document.hidden) return;
    source = new EventSource("/api/v1/events");
    source.addEventListener("open", () => { state("live", "live"); });
    const heard = () => { refresh(); };
    for (const name of ["message", "state", "change"]) source.addEventListener(name, heard);
    source.addEventListener("error", () => {
      state("lost", "not connected: what you see may be old");
      // The browser goes on by itself unless it was refused.
      if (source && source.readyState === EventSource.CLOSED) {
        hangUp();
        retry = setTimeout(listen, 5000);
      }
    });
  }

  function hangUp() {
    clearTimeout(retry);
    if (source) source.close();
    source = null;
  }

  // A page that nobody looks at takes no connection from those that somebody does.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) hangUp();
    else {
      refresh();
      listen();
    }
  });
  addEventListener("pagehide", hangUp);
  addEventListener("pageshow", (event) => { if (event.persisted) { refresh(); listen(); } });

  // ---- Clocks -----------------------------------------------------------------------------------------------------------------

  function span(seconds) {
    if (seconds < 120) return `${seconds}s`;
    if (seconds < 7200) return `${Math.floor(seconds / 60)}m`;
    if (seconds < 172800) return `${Math.floor(seconds / 3600)}h`;
    return `${Math.floor(seconds / 86400)}d`;
  }

  function tick() {
    const now = Date.now() + ahead;
    for (const time of all("time[data-age], time[data-until]")) {
      const at = Date.parse(time.dateTime);
      const seconds = Math.max(0, Math.floor((time.dataset.until === undefined ? now - at : at - now) / 1000));
      const words = span(seconds);
      if (time.textContent !== words) time.textContent = words;
    }
  }
  setInterval(() => { if (!document.hidden) tick(); }, 1000);

  // ---- Finding one's way ------------------------------------------------------------------------------------------------------

  function filter() {
    const field = find("[data-filter]");
    if (!field) return;
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const item of all(".column .card, .column .lines li")) {
      const text = item.textContent.toLowerCase();
      item.hidden = !words.every((word) => text.includes(word));
    }
  }
  document.addEventListener("input", (event) => { if (event.target.matches("[data-filter]")) filter(); });

  const NO_KEYS = "dirigent-no-keys";
  const remembered = () => { try { return localStorage.getItem(NO_KEYS) === null; } catch { return true; } };
  const keysOn = () => { const box = find("[data-keys-on]"); return !box || box.checked; };
  const box = find("[data-keys-on]");
  if (box) {
    box.checked = remembered();
    box.addEventListener("change", () => {
      try { box.checked ? localStorage.removeItem(NO_KEYS) : localStorage.setItem(NO_KEYS, "1"); } catch { /* for this page alone */ }
    });
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !keysOn()) return;
    if (event.target.closest("input, textarea, select, dialog")) {
      if (event.key === "Escape" && event.target.matches("[data-filter]")) {
        event.target.value = "";
        filter();
        event.target.blur();
      }
      return;
    }
    const step = { j: 1, k: -1 }[event.key];
    if (step) {
      const tickets = all("main a.key, main .lines a").filter((link) => link.getClientRects().length > 0);
      const here = tickets.indexOf(document.activeElement);
      const next = tickets[here < 0 ? (step > 0 ? 0 : tickets.length - 1) : here + step];
      if (next) next.focus();
    } else if (event.key === "/") find("[data-filter]")?.focus();
    else if (event.key === "u") location.assign("/");
    else if (event.key === "?") find("#keys")?.showModal();
    else return;
    event.preventDefault();
  });

  // ---- Where looking needs a token --------------------------------------------------------------------------------------------

  const login = find("form[data-login]");
  if (login) {
    login.addEventListener("submit", (event) => {
      event.preventDefault();
      const token = find("input", login).value.trim();
      keep(token);
      document.cookie = `${KEPT}=${token}; Path=/; SameSite=Strict${isSecureContext && location.protocol.endsWith("s:") ? "; Secure" : ""}`;
      const to = new URLSearchParams(location.search).get("to") || "/";
      // A path of ours, never another site.
      location.assign(/^\/(?!\/|\\)/.test(to) ? to : "/");
    });
    return;
  }
  tick();
  listen();
})();
