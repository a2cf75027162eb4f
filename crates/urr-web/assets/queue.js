// The waiting page. It works without this script by reloading; with it the page follows the line.
(() => {
'use strict';
const main = document.querySelector('main');
const { event: id, next } = main.dataset;
const texts = JSON.parse(document.getElementById('t').textContent);
const field = (name) => main.querySelector(`[data-f=${name}]`);
const icon = document.querySelector('link[rel=icon]');
const plainTitle = document.title, plainIcon = icon.href;
const hasLeft = /[?&]left\b/.test(location.search);
const format = new Intl.NumberFormat(document.documentElement.lang);
const fill = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]);
const storage = {
  get(key) { try { return sessionStorage.getItem(`urr.queue.${id}.${key}`); } catch { return null; } },
  set(key, value) { try { sessionStorage.setItem(`urr.queue.${id}.${key}`, value); } catch {} },
};
const channel = 'BroadcastChannel' in window ? new BroadcastChannel(`urr.queue.${id}`) : null;

let offset = Date.parse(main.dataset.now) - Date.now() || 0, bestTrip = Infinity;
let opensAt = Date.parse(main.dataset.opens), gathersAt = Date.parse(main.dataset.gathers);
let timer = 0, failures = 0, etag = '', asked = 0, isAsking = false;
let number = null, position = null, turnEnds = 0, slotEnds = 0, isAlerting = false, sound = null;
const now = () => Date.now() + offset;

// Every answer tells the server's time; the quickest one tells it best.
function readClock(response, begun) {
  const trip = Date.now() - begun, date = Date.parse(response.headers.get('date'));
  if (date && trip <= bestTrip) {
    bestTrip = trip;
    offset = date + 500 - (begun + trip / 2);
  }
}

async function send(method, path, headers) {
  const begun = Date.now();
  const response = await fetch(path, {
    method,
    headers: { accept: 'application/json', 'accept-language': document.documentElement.lang, ...headers },
    signal: AbortSignal.timeout?.(12000),
  });
  readClock(response, begun);
  return response;
}

// One refresh for all tabs: the others find a token that ends later.
const sessionKey = 'urr.session';
function session() { try { return JSON.parse(localStorage.getItem(sessionKey)); } catch { return {}; } }
async function refresh() {
  const before = session();
  const work = async () => {
    const known = session();
    if (known && before && known.accessEndsAt > before.accessEndsAt) return true;
    const response = await send('POST', '/api/auth/refresh');
    if (!response.ok) return false;
    const { user, expiresIn } = await response.json();
    try { localStorage.setItem(sessionKey, JSON.stringify({ ...known, user: { ...known?.user, ...user }, accessEndsAt: Date.now() + expiresIn * 1000 })); } catch {}
    return true;
  };
  return navigator.locks ? navigator.locks.request('urr.session.refresh', work) : work();
}

async function ask(method, path, headers) {
  // Nobody is logged in: there is nothing to ask.
  if (!session()) return new Response('{}', { status: 401 });
  if (session().accessEndsAt < Date.now() + 60000) await refresh();
  let response = await send(method, path, headers);
  if (response.status === 401 && (await refresh())) response = await send(method, path, headers);
  return response;
}

// Two things at once are said one after the other.
let saidAt = 0;
function say(text) {
  const live = field('live');
  if (live.textContent.includes(text)) return;
  live.textContent = Date.now() - saidAt < 1500 ? `${live.textContent} ${text}` : text;
  saidAt = Date.now();
}

function show(state) {
  if (main.dataset.state === state) return false;
  main.dataset.state = state;
  if (state !== 'turn') stopAlert();
  document.title = state === 'turn' ? `● ${texts.turn}` : plainTitle;
  return true;
}

function duration(seconds) {
  const minutes = Math.round(seconds / 60);
  if (minutes < 1) return texts.moment;
  if (minutes < 60) return fill(texts.minutes, { n: minutes });
  return fill(texts.hours, { h: Math.floor(minutes / 60), m: minutes % 60 });
}

function range(wait) {
  if (!wait) return texts.unknown;
  const [from, to] = [duration(wait.from), duration(wait.to)];
  return from === to ? from : fill(texts.range, { from, to });
}

const two = (n) => String(n).padStart(2, '0');
function clock(ms) {
  const s = Math.max(0, Math.ceil(ms / 1000)), days = Math.floor(s / 86400);
  const time = `${two(Math.floor(s / 3600) % 24)}:${two(Math.floor(s / 60) % 60)}:${two(s % 60)}`;
  return days ? fill(texts.days, { d: days, time }) : time;
}

// Once a second: countdowns.
function tick() {
  const state = main.dataset.state;
  const target = state === 'early' && gathersAt > now() ? gathersAt : opensAt;
  const text = target > now() ? fill(target === gathersAt ? texts.gathersIn : texts.opensIn, { time: clock(target - now()) }) : '';
  if (field('clock').textContent !== text) field('clock').textContent = text;
  if (state === 'turn') {
    const left = turnEnds - now();
    field('turn').textContent = left > 0 ? fill(texts.turnIn, { n: Math.ceil(left / 1000) }) : slotEnds > now() ? fill(texts.slotLeft, { time: clock(slotEnds - now()) }) : '';
    if (left <= 0 && turnEnds) {
      turnEnds = 0;
      if (!document.hidden) location.assign(next);
    }
  }
}

function showPlace(near, far) {
  position = far;
  const shown = format.format(far), figure = field('position');
  figure.textContent = near < far ? `~${shown}` : shown;
  figure.className = shown.length > 4 ? 'long' : '';
  field('ahead').textContent = fill(texts.people, { n: format.format(far - 1) });
  document.title = `${shown}${texts.unit} · ${plainTitle}`;
  const first = Math.max(far, Number(storage.get('first')) || far);
  storage.set('first', first);
  const done = first > 1 ? Math.round(((first - far) / (first - 1)) * 100) : 100;
  field('bar').setAttribute('aria-valuenow', done);
  field('bar').firstChild.style.transform = `translateX(${Math.max(done, 3) - 100}%)`;
  announcePlace(far);
}

// Not every step: at most once a minute, and at the last ten.
let announced = { position: Infinity, at: 0 };
function announcePlace(place) {
  const isNear = place <= 10 && place < announced.position;
  if (!isNear && (Date.now() - announced.at < 60000 || place === announced.position)) return;
  announced = { position: place, at: Date.now() };
  say(fill(texts.placeSaid, { n: format.format(place) }));
}

function showCommon(view) {
  const sold = Boolean(view.soldOut);
  if (sold && !('sold' in main.dataset)) say(texts.sold);
  main.toggleAttribute('data-sold', sold);
  if (view.opensAt) opensAt = Date.parse(view.opensAt);
  field('paused').hidden = view.phase !== 'paused';
}

function showMessage(text) {
  const note = field('message');
  if (text && note.textContent !== text) say(text);
  note.textContent = text ?? '';
  note.hidden = !text;
}

// What the server says about this user.
function showStatus(view) {
  showCommon(view);
  if (view.status === 'queued') {
    storage.set('waited', '1');
    number = view.number;
    showMessage(view.message);
    field('wait').textContent = range(view.estimatedWaitRange);
    if (view.queueSize != null) field('waiting').textContent = fill(texts.people, { n: format.format(view.queueSize) });
    if (view.position == null) {
      if (show('draw')) say(texts.drawSaid);
    } else {
      show('wait');
      field('behind').textContent = fill(texts.people, { n: format.format(view.peopleBehind) });
      showPlace(view.position, view.position);
    }
  } else if (view.status === 'active') {
    slotEnds = Date.parse(view.slotEndsAt);
    takeTurn(view.slotLastEnd);
  } else if (view.status === 'ended') {
    finish(view.phase);
  } else if (main.dataset.state === 'turn' || main.dataset.state === 'wait') {
    refuse(texts.lost);
  } else {
    show('join');
  }
}

// The room is closed for good.
function finish(phase) {
  show(phase === 'cancelled' ? 'off' : 'end');
}

function refuse(text) {
  field('stop').textContent = text;
  show('stop');
  say(text);
}

// The place within the line, from the document that is the same for everybody.
function placeIn(marks) {
  const behind = marks.findIndex(([n]) => n > number);
  const at = (behind < 0 ? marks.length : behind) - 1;
  if (at < 0) return null;
  const [n, p] = marks[at], after = marks[at + 1];
  if (n === number) return [p, p];
  let near = p + 1, far = p + (number - n);
  if (after) {
    near = Math.max(near, after[1] - (after[0] - number));
    far = Math.min(far, after[1] - 1);
  }
  return [near, far];
}

function showCrowd(crowd) {
  showCommon(crowd);
  showMessage(crowd.message);
  gathersAt = Date.parse(crowd.gathersAt);
  field('waiting').textContent = fill(texts.people, { n: format.format(crowd.waiting) });
  field('speed').textContent = crowd.ratePerMinute ? fill(texts.perMinute, { n: format.format(crowd.ratePerMinute) }) : texts.unknown;
  if (/over|cancelled/.test(crowd.phase)) finish(crowd.phase);
}

// A turn after a wait is announced; someone who did not wait goes straight on.
function takeTurn(slot) {
  if (!storage.get('waited')) {
    location.replace(next);
    return;
  }
  if (!show('turn')) return;
  // A reload does not make the minute longer.
  const [known, ends] = (storage.get('turn') ?? '').split('|');
  turnEnds = known === slot ? Number(ends) : now() + 60000;
  storage.set('turn', `${slot}|${turnEnds}`);
  document.body.scrollIntoView();
  say(texts.turnSaid);
  icon.href = texts.turnIcon;
  startAlert();
}

let ringing = 0;
function ring() {
  if (!sound) return;
  for (const [at, pitch] of [[0, 660], [0.18, 880], [0.36, 1320]]) {
    const tone = sound.createOscillator(), volume = sound.createGain(), begin = sound.currentTime + at;
    tone.frequency.value = pitch;
    volume.gain.setValueAtTime(0.25, begin);
    volume.gain.exponentialRampToValueAtTime(0.001, begin + 0.3);
    tone.connect(volume).connect(sound.destination);
    tone.start(begin);
    tone.stop(begin + 0.3);
  }
}

async function startAlert() {
  if (!isAlerting) return;
  ring();
  ringing = setInterval(ring, 4000);
  navigator.vibrate?.([300, 150, 300]);
  if (window.Notification?.permission !== 'granted') return;
  const note = { body: plainTitle, tag: id, requireInteraction: true };
  try {
    new Notification(texts.turn, note).onclick = () => window.focus();
  } catch {
    // Phones show notifications only through the service worker.
    (await navigator.serviceWorker?.getRegistration())?.showNotification(texts.turn, note);
  }
}

function stopAlert() {
  clearInterval(ringing);
  icon.href = plainIcon;
}

// Far from the front the shared document is enough: it comes from caches. The status keeps the
// place, so it is asked for every few minutes in any case.
async function poll() {
  clearTimeout(timer);
  if (isAsking) return;
  isAsking = true;
  let pause = 5;
  try {
    const state = main.dataset.state;
    if (state === 'early' && gathersAt > now()) pause = await pollEarly();
    else if (state === 'wait' && position > 5000 && Date.now() - asked < 240000) pause = await pollCrowd();
    else pause = await pollStatus();
    failures = 0;
    online(true);
  } catch {
    failures += 1;
    pause = Math.min(60, 2 ** failures) * (0.75 + Math.random() / 2);
    online(false);
  }
  isAsking = false;
  if (pause) timer = setTimeout(poll, pause * 1000);
}

async function pollEarly() {
  const response = await send('GET', `/api/queue/crowd/${id}`);
  if (!response.ok) throw response;
  const crowd = await response.json();
  showCrowd(crowd);
  const wait = (gathersAt - now()) / 1000;
  // The doors open for everybody at once: arrivals are spread over some seconds.
  return wait > 60 ? Math.min(wait - 30, 30 + Math.random() * 30) : Math.max(0, wait) + 0.5 + Math.random() * 4;
}

async function pollCrowd() {
  const response = await send('GET', `/api/queue/crowd/${id}`);
  if (!response.ok) throw response;
  const crowd = await response.json();
  showCrowd(crowd);
  const place = crowd.phase === 'open' && placeIn(crowd.marks);
  if (!place || place[0] <= 5000) return pollStatus();
  showPlace(place[0], place[1]);
  return (position > 100000 ? 60 : position > 10000 ? 30 : 10) * (1 + Math.random() * 0.4);
}

let crowdAt = 0;
async function pollStatus() {
  const isFirst = !asked && !hasLeft;
  const response = isFirst
    ? await ask('POST', `/api/queue/check/${id}`)
    : await ask('GET', `/api/queue/status/${id}`, etag ? { 'if-none-match': etag } : {});
  asked = Date.now();
  if (response.status === 304) return pauseOf.last;
  const view = await response.json().catch(() => ({}));
  if (!response.ok) return refused(response, view);
  etag = response.headers.get('etag') ?? '';
  showStatus(view);
  channel?.postMessage(view);
  // The speed of the line comes with the shared document, which changes slowly.
  if (view.queued && Date.now() - crowdAt > 15000) {
    crowdAt = Date.now();
    send('GET', `/api/queue/crowd/${id}`).then(async (r) => r.ok && showCrowd(await r.json())).catch(() => {});
  }
  return pauseOf(view);
}

// A turn that nobody takes within its minute is no longer kept alive: then the slot runs out.
function pauseOf(view) {
  const isOver = view.status === 'ended' || (view.status === 'active' && turnEnds < now());
  const pause = isOver ? 0 : view.status === 'active' ? 15 : view.nextPoll;
  return (pauseOf.last = pause);
}

function refused(response, { code, error, opensAt: opens, retryAfter }) {
  asked = 0;
  if (response.status === 401) {
    show('login');
    return 0;
  }
  if (response.status === 429 || response.status >= 500 || code === 'ROOM_NOT_READY') {
    online(false);
    return (retryAfter || 3) * (1 + Math.random() * 0.5);
  }
  if (code === 'SALE_NOT_OPEN') {
    opensAt = Date.parse(opens) || opensAt;
    gathersAt = gathersAt || opensAt;
    show('early');
    return 5 + Math.random() * 5;
  }
  if (code === 'SALE_ENDED' || code === 'EVENT_CANCELLED') {
    finish(code === 'EVENT_CANCELLED' && 'cancelled');
    return 0;
  }
  refuse(texts.refusals[code] || error || texts.lost);
  return 0;
}

function online(isOnline) {
  const line = field('link');
  const time = new Date(now()).toLocaleTimeString(document.documentElement.lang);
  line.textContent = isOnline ? fill(texts.checkedAt, { time }) : texts.offline;
  const look = isOnline ? 'foot' : 'foot off';
  if (line.className !== look) say(isOnline ? texts.online : texts.offline);
  line.className = look;
}

// After sleep, a lost network or a visit to another tab: ask at once.
function wake() {
  bestTrip = Infinity;
  const state = main.dataset.state;
  if (document.hidden || /left|stop|end|off/.test(state)) return;
  if (state === 'login') asked = 0;
  if (Date.now() - asked > 2000) {
    clearTimeout(timer);
    timer = setTimeout(poll, Math.random() * 400);
  }
}
document.addEventListener('visibilitychange', wake);
addEventListener('pageshow', (event) => event.persisted && wake());
addEventListener('online', wake);
addEventListener('offline', () => online(false));
// Another tab of the same line has just asked: this one need not.
channel?.addEventListener('message', ({ data }) => {
  if (/left|turn/.test(main.dataset.state)) return;
  asked = Date.now();
  showStatus(data);
  clearTimeout(timer);
  const pause = pauseOf(data);
  if (pause) timer = setTimeout(poll, (pause + 2) * 1000 * (document.hidden ? 2 : 1));
});

const alertButton = field('alert'), mailButton = field('mail');
alertButton.hidden = mailButton.hidden = false;
alertButton.addEventListener('click', async () => {
  isAlerting = true;
  sound ??= new (window.AudioContext || window.webkitAudioContext)();
  sound.resume();
  ring();
  alertButton.disabled = true;
  alertButton.textContent = texts.alertOn;
  if (window.Notification?.permission === 'default') await Notification.requestPermission();
});
mailButton.addEventListener('click', async () => {
  mailButton.disabled = true;
  const response = await ask('POST', `/api/queue/${id}/reminder`).catch(() => null);
  mailButton.disabled = Boolean(response?.ok);
  if (response?.ok) mailButton.textContent = texts.mailOn;
});

// What was promised before the draw is noted, for the page that verifies it.
const promise = field('promise'), noteKey = `urr.draw.${id}`;
if (promise && /closed|gathering/.test(main.dataset.phase)) try {
  if (!localStorage.getItem(noteKey)) localStorage.setItem(noteKey, JSON.stringify({ commitment: promise.textContent, seenAt: new Date(now()).toISOString() }));
} catch {}

setInterval(tick, 500);
tick();
if (hasLeft) show('left');
else if (/over|cancelled/.test(main.dataset.phase)) finish(main.dataset.phase);
else poll();
})();
