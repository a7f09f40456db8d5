// What the pages gain from a script. Without it they work all the same.

/** The reader's own time beside each UTC time. */
const local = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' });
for (const element of document.querySelectorAll('time[datetime]')) {
  const own = document.createElement('span');
  own.className = 'local';
  own.textContent = ` ${local.format(new Date(element.dateTime))} here`;
  element.after(own);
}

/** A button beside each text that is meant to be taken along. */
for (const box of document.querySelectorAll('.copy')) {
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

/** What was done is said once, and not again by a reload. */
const here = new URL(location.href);
if (here.searchParams.has('said')) {
  here.searchParams.delete('said');
  history.replaceState(null, '', here);
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

/** What is under way is looked at again by itself, for ten minutes: a page that is forgotten keeps no login alive. */
const looked = Number(new URLSearchParams(location.search).get('looked') ?? 0);
if (document.querySelector('.reload') && looked < 120) {
  setInterval(() => {
    if (!document.hidden) location.replace(`${location.pathname}?looked=${looked + 1}`);
  }, 5000);
}
