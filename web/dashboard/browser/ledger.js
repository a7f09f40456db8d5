// The check of a bill in the browser: the ledger's digests and its newest anchor (docs/auditing.md), asked of this host alone.

const box = document.querySelector('#ledger-check');
const button = box.querySelector('button');
const bytesOf = (base64) => Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
const encoded = (lines) => new TextEncoder().encode(lines.join('\n'));

function say(text, tone) {
  const line = box.querySelector('[role=status]');
  line.className = `notice ${tone}`;
  line.textContent = text;
}

/** WebCrypto stands in secure contexts alone, and some browsers lack Ed25519. */
const keyOf = (anchor) =>
  crypto.subtle.importKey('spki', bytesOf(anchor.public_key), 'Ed25519', false, ['verify']);

async function digestOf(entry) {
  const { number, partner_id, reveal_id, tracker_id, key_id, user_id } = entry;
  const who = [partner_id, reveal_id, tracker_id, key_id ?? '', user_id ?? ''];
  const lines = [number, ...who, entry.completed_at, entry.units, entry.position, entry.previous];
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', encoded(lines)));
  return [...digest].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

async function readEntries({ months, head }) {
  const texts = [];
  for (const month of months) {
    const answer = await fetch(`/dashboard/billing/${month}/ledger.jsonl`);
    if (!answer.ok || answer.redirected) throw new Error(`${month} was not answered`);
    texts.push(await answer.text());
  }
  const lines = texts.join('\n').split('\n').filter(Boolean);
  // What was added since the page was made is not meant.
  return lines.map((line) => JSON.parse(line)).filter(({ number }) => number <= head.number);
}

async function check({ month, head, anchor, totals }, entries) {
  const { partner_id, made_at, entries: anchored, units: anchoredUnits, head_digest } = anchor;
  const signed = encoded(['doorplate anchor 1', partner_id, made_at, anchored, anchoredUnits, head_digest]);
  if (!(await crypto.subtle.verify('Ed25519', await keyOf(anchor), bytesOf(anchor.signature), signed)))
    throw new Error('the signature of the anchor is wrong');
  entries.sort((one, other) => one.number - other.number);
  let previous = { number: -1, digest: '0'.repeat(64), position: -1n };
  let units = 0;
  const found = { entries: 0, units: 0 };
  for (const entry of entries) {
    const { number, digest, completed_at } = entry;
    const position = BigInt(entry.position);
    const fits = number === previous.number + 1 && entry.previous === previous.digest;
    const isSound = entry.partner_id === partner_id && position > previous.position;
    if (!fits || !isSound || (await digestOf(entry)) !== digest)
      throw new Error(`entry ${number} does not fit`);
    units += entry.units;
    if (completed_at.startsWith(month)) {
      found.entries += 1;
      found.units += entry.units;
    }
    previous = { number, digest, position };
    if (number === anchored - 1 && (digest !== head_digest || units !== anchoredUnits))
      throw new Error('the ledger is not the one that the anchor was made of');
  }
  if (previous.number !== head.number || previous.digest !== head.digest || head.number < anchored - 1)
    throw new Error('the ledger does not end as this page says');
  if (found.entries !== totals.entries || found.units !== totals.units)
    throw new Error('the totals of the month are not those of its entries');
  return `The digests of all ${entries.length} entries fit, and so does the signed anchor. ${month}: ${found.entries} entries, ${found.units} units.`;
}

const known = JSON.parse(box.dataset.ledger);
if (window.isSecureContext)
  keyOf(known.anchor).then(
    () => {
      box.hidden = false;
    },
    () => {},
  );
button.addEventListener('click', async () => {
  say('Checking …', 'wait');
  const entries = await readEntries(known).catch(() => null);
  if (entries === null) return say('The entries cannot be read here. Use the command above.', 'wait');
  await check(known, entries).then(
    (text) => say(text, 'good'),
    (error) => say(`Not proven: ${error.message}.`, 'bad'),
  );
});
