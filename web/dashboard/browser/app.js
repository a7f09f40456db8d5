// What the pages gain from a script. Without it they work all the same.

/** An element with properties and content. */
const element = (name, properties, ...content) => {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...content);
  return made;
};

/** A button beside each text that is meant to be taken along. */
function addCopyButtons(part) {
  for (const box of part.querySelectorAll('.copy')) {
    const button = element('button', { type: 'button', className: 'quiet', ariaLive: 'polite' }, 'Copy');
    button.addEventListener('click', async () => {
      try {
        await navigator.clipboard.writeText(box.querySelector('code').textContent);
        button.textContent = 'Copied';
      } catch {
        getSelection().selectAllChildren(box.querySelector('code'));
        button.textContent = 'Selected: copy it';
      }
    });
    box.append(button);
  }
}
const live = document.querySelector('[data-live]');
/** What the live part was, as the server sends it. */
let last = live?.innerHTML;
addCopyButtons(document);

/** A secret that nobody can show again: leaving its page asks first, until it was copied or its reader says that it is kept. */
const once = document.querySelector('[data-once]');
if (once !== null) {
  let isKept = false;
  const keep = () => {
    isKept = true;
  };
  once.querySelector('button').addEventListener('click', keep);
  once.addEventListener('copy', keep);
  for (const kept of document.querySelectorAll('[data-kept], input[name=kept]'))
    kept.addEventListener('click', keep);
  addEventListener('beforeunload', (event) => {
    if (!isKept) event.preventDefault();
  });
}

/** The mark of a login stays in no address. */
const here = new URL(location.href);
if (here.searchParams.has('said')) {
  here.searchParams.delete('said');
  history.replaceState(null, '', here);
}

/** Filters act as soon as one is changed; the button is for browsers without scripts, and for Enter. */
for (const form of document.querySelectorAll('form.filter, form.search')) {
  form.querySelector('.apply').hidden = true;
  form.addEventListener('change', () => form.requestSubmit());
}

/** An open menu closes where the reader goes on elsewhere. */
const closeMenus = (but) => {
  for (const menu of document.querySelectorAll('.picker[open]')) if (menu !== but) menu.open = false;
};
addEventListener('click', ({ target }) => closeMenus(target.closest('.picker')));
addEventListener('keydown', ({ key, target }) => {
  if (key !== 'Escape') return;
  target.closest('.picker')?.querySelector('summary').focus();
  closeMenus();
});

/** Heads that sort a table which holds its whole list: by instant, by figure, else by text. */
function sortKey(cell) {
  const time = cell.querySelector('time');
  if (time) return Date.parse(time.dateTime);
  const text = cell.textContent.trim();
  const figure = Number.parseFloat(text.replaceAll(',', ''));
  return cell.classList.contains('number') ? figure || 0 : text.toLowerCase();
}
for (const table of document.querySelectorAll('table[data-sortable]')) {
  for (const [column, head] of [...table.tHead.rows[0].cells].entries()) {
    const button = element('button', { type: 'button' }, ...head.childNodes);
    head.append(button);
    button.addEventListener('click', () => {
      const order = head.ariaSort === 'ascending' ? 'descending' : 'ascending';
      for (const other of table.tHead.rows[0].cells) other.ariaSort = null;
      head.ariaSort = order;
      const rows = [...table.tBodies[0].rows].map((row) => [sortKey(row.cells[column]), row]);
      rows.sort(([a], [b]) => (a === b ? 0 : a < b || typeof a !== typeof b ? -1 : 1));
      if (order === 'descending') rows.reverse();
      table.tBodies[0].append(...rows.map(([, row]) => row));
    });
  }
}

/** A card with the figures of a point of time, on hover and, by the arrow keys, on focus. */
function addCard(chart) {
  const [plot, slots] = [chart.querySelector('.plot'), [...chart.querySelectorAll('.slots > g')]];
  const rows = [...chart.querySelectorAll('.figures tbody tr')];
  const names = [...chart.querySelectorAll('.figures th')].map(({ textContent }) => textContent);
  const card = element('div', { className: 'card', role: 'status' });
  let here = slots.length - 1;
  const hide = () => {
    card.remove();
    slots[here].classList.remove('here');
  };
  const showAt = (index) => {
    hide();
    here = Math.min(Math.max(index, 0), slots.length - 1);
    slots[here].classList.add('here');
    const [label, ...values] = [...rows[here].cells].map(({ textContent }) => textContent);
    const lines = values.map((value, nth) =>
      element('div', {}, `${names[nth + 1]} `, element('strong', {}, value)),
    );
    card.replaceChildren(label, ...lines);
    plot.append(card);
    const [box, slot] = [plot.getBoundingClientRect(), slots[here].firstElementChild.getBoundingClientRect()];
    const middle = slot.left + slot.width / 2 - box.left;
    const left = middle > box.width / 2 ? middle - card.offsetWidth - 12 : middle + 12;
    card.style.left = `${left}px`;
  };
  for (const [index, slot] of slots.entries()) {
    slot.querySelector('title').remove();
    slot.addEventListener('pointerenter', () => showAt(index));
  }
  plot.addEventListener('pointerleave', hide);
  const ariaLabel = 'Figures of the chart: the arrow keys go from one to the next';
  Object.assign(plot, { tabIndex: 0, role: 'group', ariaLabel });
  plot.addEventListener('focus', () => plot.matches(':focus-visible') && showAt(here));
  plot.addEventListener('blur', hide);
  plot.addEventListener('keydown', (event) => {
    const to = { ArrowLeft: here - 1, ArrowRight: here + 1, Home: 0, End: slots.length - 1 }[event.key];
    if (event.key === 'Escape') hide();
    if (to === undefined) return;
    event.preventDefault();
    showAt(to);
  });
}
for (const chart of document.querySelectorAll('.chart')) addCard(chart);

/** The zone of the browser is offered where another one is set. */
const zone = document.querySelector('input[name=time_zone]');
const ownZone = new Intl.DateTimeFormat().resolvedOptions().timeZone;
zone?.addEventListener('focus', () => zone.select());
if (zone !== null && zone.value !== ownZone) {
  const button = element('button', { className: 'quiet' }, `Use ${ownZone}`);
  button.addEventListener('click', () => {
    zone.value = ownZone;
  });
  zone.form.append(' ', button);
}

/** A box that ticks all others of its form. */
for (const all of document.querySelectorAll('input[data-all]')) {
  all.hidden = false;
  all.addEventListener('change', () => {
    for (const one of all.form.querySelectorAll(`input[name="${all.dataset.all}"]`))
      one.checked = all.checked;
  });
}

/** One click is one request: the button rests until the next page is there. */
for (const form of document.querySelectorAll('form[method=post]')) {
  form.addEventListener('submit', (event) => {
    if (form.dataset.sent) event.preventDefault();
    form.dataset.sent = 'yes';
  });
}
addEventListener('pageshow', () => {
  for (const form of document.querySelectorAll('form[data-sent]')) delete form.dataset.sent;
});

/**
 * What is under way is looked at again by itself, for ten minutes: a page that is forgotten keeps no login alive. A live part of
 * the page is exchanged alone, unless the reader is busy in it; a page without one is loaded anew while it asks for that.
 */
const EVERY_MS = 5_000;
const MOST = 120;

async function refresh(part) {
  const answer = await fetch(location.href);
  if (!answer.ok || answer.redirected) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), 'text/html').getElementById(part.id);
  // What it waited for has come, and the page shows something else.
  if (fresh === null) location.reload();
  const selection = getSelection();
  const isBusy =
    // Who has just copied the snippet waits for what comes of it.
    (part.contains(document.activeElement) && document.activeElement.closest('.copy') === null) ||
    part.querySelector('input:checked, details[open]') !== null ||
    (!selection.isCollapsed && selection.containsNode(part, true));
  if (fresh === null || isBusy || fresh.innerHTML === last) return;
  last = fresh.innerHTML;
  part.replaceChildren(...fresh.childNodes);
  addCopyButtons(part);
  for (const chart of part.querySelectorAll('.chart')) addCard(chart);
}

function sayThatItEnds() {
  const link = element('a', { href: location.href }, 'Look again');
  const text = 'This page no longer looks for news by itself. ';
  const note = element('p', { className: 'notice wait', role: 'status' }, text, link);
  document.querySelector('main h1').closest('.head').after(note);
  for (const promise of document.querySelectorAll('[data-while-live]')) promise.hidden = true;
}

const reload = document.querySelector('.reload');
const looked = Number(here.searchParams.get('looked') ?? 0);
if (here.searchParams.has('looked')) {
  here.searchParams.delete('looked');
  history.replaceState(null, '', here);
}
if (live !== null) {
  let times = 0;
  const timer = setInterval(() => {
    if (document.hidden) return;
    times += 1;
    refresh(live).catch(() => {});
    if (times < MOST) return;
    clearInterval(timer);
    sayThatItEnds();
  }, EVERY_MS);
} else if (reload !== null && looked < MOST) {
  setInterval(() => {
    if (document.hidden || !getSelection().isCollapsed) return;
    here.searchParams.set('looked', looked + 1);
    location.replace(here);
  }, EVERY_MS);
} else if (reload !== null) sayThatItEnds();
