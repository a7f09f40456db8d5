// What the pages gain from a script. Without it they work all the same.

/** A button beside each text that is meant to be taken along. */
function addCopyButtons(part) {
  for (const box of part.querySelectorAll('.copy')) {
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'quiet';
    button.textContent = 'Copy';
    button.setAttribute('aria-live', 'polite');
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

/** The dates of a period are asked for when they count. */
for (const period of document.querySelectorAll('.filter select[name=period]')) {
  const dates = ['from', 'to'].map((name) => period.form.elements[name].closest('.field'));
  const showDates = () => {
    for (const date of dates) {
      date.hidden = period.value !== 'custom';
      date.querySelector('input').disabled = date.hidden;
    }
  };
  showDates();
  period.addEventListener('change', showDates);
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
}

function sayThatItEnds() {
  const note = document.createElement('p');
  note.className = 'notice';
  note.setAttribute('role', 'status');
  const link = document.createElement('a');
  link.href = location.href;
  link.textContent = 'Look again';
  note.append('This page no longer looks for news by itself. ', link);
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
