'use strict';
// The server sends the list of parameters; this script contains no parameter names.

const byId = id => document.getElementById(id);
// Angles of a knob, degrees: whole range, and start.
const RANGE = 270, START = 135;
// Lowest level that a meter shows, dB.
const MIN_DB = -60;

// GET without a body, else POST.
async function request(path, body) {
  const response = await fetch(path, body === undefined ? {} : {
    method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body),
  });
  const json = await response.json();
  if (!response.ok) throw new Error(json.error);
  return json;
}

function showMessage(text, isError) {
  byId('message').textContent = text;
  byId('message').classList.toggle('bad', Boolean(isError));
}

const showError = error =>
  showMessage(error instanceof TypeError ? 'cannot reach punctual: is it still running?' : error.message, true);

// Values to send, by parameter name. Only the newest value of a knob is kept while it is dragged.
const unsent = new Map();
// Number of the last state request that was made before a value had arrived, by parameter name. Responses to that request and
// to earlier ones may contain an older value.
const staleUntil = new Map();
let version, sending, stateRequests = 0;
async function set(name, value) {
  unsent.set(name, value);
  if (sending) return;
  while (unsent.size) {
    let value;
    [[sending, value]] = unsent;
    unsent.delete(sending);
    try {
      const response = await request('set', { name: sending, value });
      // If the version grew by more than 1, another page has changed something: the next poll loads the state.
      if (response.version === version + 1) version = response.version;
    } catch (error) { showError(error); }
    staleUntil.set(sending, stateRequests);
  }
  sending = undefined;
}

const label = name => name.replace(/_(db|ms|dbu)$/, '').replaceAll('_', ' ');
const make = (tag, properties = {}, ...children) => {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
};

// An SVG arc between two positions of a knob, 0 to 1.
function arc(from, to) {
  const point = position => {
    const angle = (START + RANGE * position) * Math.PI / 180;
    return `${(32 + 26 * Math.cos(angle)).toFixed(2)} ${(32 + 26 * Math.sin(angle)).toFixed(2)}`;
  };
  return `M${point(from)}A26 26 0 ${(to - from) * RANGE > 180 ? 1 : 0} 1 ${point(to)}`;
}

// A value with sign and unit; never "-0".
function format(parameter, value) {
  const digits = parameter.most - parameter.least <= 2 ? 2 : parameter.most - parameter.least <= 200 ? 1 : 0;
  return `${value > 0 && parameter.least < 0 ? '+' : ''}${value.toFixed(digits)}${parameter.unit ? ' ' + parameter.unit : ''}`.replace(/^-(0(\.0*)?)(?!\d|\.)/, '$1');
}

function knob(parameter, name, group) {
  const { least, most, value, about } = parameter;
  const step = (most - least) / (most - least <= 2 ? 100 : most - least <= 200 ? (most - least) * 10 : most - least);
  const input = make('input', { type: 'range', min: least, max: most, step, value, id: parameter.name, title: about, ariaLabel: `${group} ${name}` });
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  svg.setAttribute('viewBox', '0 0 64 64');
  svg.innerHTML = `<path d="${arc(0, 1)}"/><path class="arc"/><circle cx="32" cy="32" r="18"/><line x1="32" y1="32"/>`;
  const [, valueArc, , pointer] = svg.children;
  const text = make('span', { className: 'value', ariaHidden: true });
  const draw = () => {
    const position = (input.valueAsNumber - least) / (most - least);
    const zero = Math.min(Math.max((0 - least) / (most - least), 0), 1);
    valueArc.setAttribute('d', arc(Math.min(position, zero), Math.max(position, zero)));
    const angle = (START + RANGE * position) * Math.PI / 180;
    pointer.setAttribute('x2', 32 + 15 * Math.cos(angle));
    pointer.setAttribute('y2', 32 + 15 * Math.sin(angle));
    text.textContent = format(parameter, input.valueAsNumber);
    input.ariaValueText = text.textContent;
  };
  const turn = to => {
    input.value = to;
    draw();
    set(parameter.name, input.valueAsNumber);
  };
  input.addEventListener('input', () => turn(input.value));
  svg.addEventListener('pointerdown', event => {
    svg.setPointerCapture(event.pointerId);
    input.focus();
    let [last, exact] = [event.clientY, input.valueAsNumber];
    const move = event => {
      exact = Math.min(Math.max(exact + (last - event.clientY) * (most - least) / (event.shiftKey ? 1500 : 180), least), most);
      last = event.clientY;
      turn(exact);
    };
    svg.addEventListener('pointermove', move);
    svg.addEventListener('lostpointercapture', () => svg.removeEventListener('pointermove', move), { once: true });
    event.preventDefault();
  });
  svg.addEventListener('wheel', event => {
    turn(input.valueAsNumber - Math.sign(event.deltaY) * (most - least) / 100);
    event.preventDefault();
  }, { passive: false });
  svg.addEventListener('dblclick', () => turn(parameter.default));
  const box = make('label', { className: 'knob', title: about }, svg, input, make('span', { textContent: name }), text);
  box.show = value => { input.value = value; draw(); };
  draw();
  return box;
}

function toggle(parameter, name, group) {
  const input = make('input', { type: 'checkbox', checked: parameter.value !== 0, id: parameter.name, ariaLabel: `${group} ${name}` });
  const box = make('label', { className: 'switch', title: parameter.about }, input, name);
  const markPanel = () => box.closest('.panel')?.classList.toggle('off', name === 'on' && !input.checked);
  input.addEventListener('change', () => { markPanel(); set(parameter.name, input.checked ? 1 : 0); });
  box.show = value => { input.checked = value !== 0; markPanel(); };
  return box;
}

function choice(parameter, name) {
  const select = make('select', { id: parameter.name }, ...parameter.words.map((word, index) => new Option(word, index)));
  select.value = parameter.value;
  select.addEventListener('change', () => set(parameter.name, Number(select.value)));
  const box = make('label', { className: 'pick', title: parameter.about }, name, select);
  box.show = value => { select.value = value; };
  return box;
}

const KINDS = { knob, switch: toggle, choice };
const boxes = new Map();

function build(parameters) {
  const panels = new Map();
  for (const parameter of parameters) {
    const [group, key] = parameter.name.split('.');
    if (!panels.has(group)) {
      const row = make('div', { className: 'row' });
      const head = make('div', { className: 'head' }, make('h2', { textContent: group }));
      const panel = make('section', { className: 'panel', ariaLabel: group }, head, row);
      panels.set(group, { panel, row });
      byId('panels').append(panel);
    }
    const { panel, row } = panels.get(group);
    const box = KINDS[parameter.kind](parameter, label(key), group);
    if (key === 'on') panel.firstChild.append(box); else row.append(box);
    boxes.set(parameter.name, box);
    box.show(parameter.value);
  }
}

function fill(select, names, chosen) {
  const all = chosen && !names.includes(chosen) ? [chosen, ...names] : names;
  // Replacing the options would close an open list.
  if (select.names !== all.join()) {
    select.names = all.join();
    select.replaceChildren(new Option(select.id === 'preset' ? 'choose' : 'none', ''), ...all.map(name => new Option(name, name)));
  }
  select.value = chosen ?? '';
}

// Responses may arrive out of order: the response to an older request is not shown after that to a newer one.
let newestShown = 0;
async function refresh() {
  const number = ++stateRequests;
  const state = await request('state');
  if (number < newestShown) return;
  newestShown = number;
  version = state.version;
  if (!boxes.size) build(state.parameters);
  const isStale = name => unsent.has(name) || sending === name || staleUntil.get(name) >= number;
  for (const { name, value } of state.parameters) if (!isStale(name)) boxes.get(name).show(value);
  fill(byId('preset'), state.presets, state.playing.preset);
  fill(byId('model1'), state.models, state.playing.models[0]);
  fill(byId('model2'), state.models, state.playing.models[1]);
  fill(byId('cabinet'), state.cabinets, state.playing.cabinet);
  document.body.dataset.ready = 'true';
}

for (const select of document.querySelectorAll('select[data-what]')) {
  select.addEventListener('change', async () => {
    // Read now, because a refresh during loading shows the old file again.
    const file = select.value;
    showMessage(file && `loading ${file}`);
    try {
      await request('choose', { what: select.dataset.what, file: file || null });
      showMessage(file && `${file} is playing`);
    } catch (error) { showError(error); }
    refresh().catch(showError);
  });
}

byId('save').addEventListener('submit', async event => {
  event.preventDefault();
  try {
    const { saved } = await request('save', { name: event.target.name.value });
    showMessage(`saved as ${saved}`);
  } catch (error) { showError(error); }
  refresh().catch(showError);
});

const db = level => level > 0 ? Math.max(20 * Math.log10(level), -99.9) : -99.9;
const percent = share => `${Math.min(Math.max(share, 0), 1) * 100}%`;

function meter(id, mean, peak, text, isHot) {
  const [meanBar, peakMark] = byId(id).querySelectorAll('i');
  meanBar.style.width = percent(mean);
  peakMark.style.left = percent(peak);
  byId(id).querySelector('.value').textContent = text;
  byId(id).classList.toggle('hot', isHot);
}

const level = (id, { peak, rms }, isHot) =>
  meter(id, 1 - db(rms) / MIN_DB, 1 - db(peak) / MIN_DB, `${db(peak) <= -99.9 ? '\u2212\u221e' : db(peak).toFixed(1)} dB`, isHot);

function lamp(id, className, text) {
  byId(id).className = className;
  // Screen readers skip a lamp that is off.
  byId(id).ariaHidden = !className;
  if (text) byId(id).textContent = text;
}

let clippedUntil = 0, clips = 0;
function show(live) {
  byId('stream').textContent = live.stream;
  level('in', live.input, live.input.peak >= 1);
  // The limiter allows peaks at full scale; higher ones are clipped.
  level('out', live.output, live.output.peak > 1);
  meter('load', live.load_mean, live.load_most, `${(live.load_most * 100).toFixed(0)} %`, live.load_most >= 1);
  lamp('gate', live.gate_is_open ? '' : 'on', live.gate_is_open ? 'gate open' : 'gate closed');
  lamp('limiter', live.limiter_gain < 0.999 ? 'on' : '', live.limiter_gain < 0.999 ? `limiting ${db(live.limiter_gain).toFixed(1)} dB` : 'limiting');
  if (live.clips > clips) clippedUntil = Date.now() + 2000;
  clips = live.clips;
  lamp('clip', Date.now() < clippedUntil ? 'bad' : '');
  const muted = live.muted.map((isMuted, index) => isMuted ? `model ${index + 1}` : '').filter(Boolean).join(' and ');
  lamp('muted', muted ? 'bad' : '', muted ? `${muted} muted: output was NaN or infinite` : 'muted');
  lamp('xruns', live.xruns ? 'bad' : 'good', live.xruns ? `${live.xruns} xrun${live.xruns > 1 ? 's' : ''}` : 'no xruns');
  byId('tuner').className = live.note ? Math.abs(live.note.cents) <= 3 ? 'active in-tune' : 'active' : '';
  byId('note').textContent = live.note ? live.note.name : '\u2013';
  byId('tuner').querySelector('i').style.left = live.note ? percent(0.5 + live.note.cents / 100) : '50%';
  byId('cents').textContent = live.note ? `${live.note.cents >= 0 ? '+' : '\u2212'}${Math.abs(live.note.cents).toFixed(1)} cents` : '';
  byId('ended').hidden = !live.ended;
  byId('ended').textContent = live.ended ?? '';
}

let hasFailed = false;
async function poll() {
  try {
    const live = await request('live');
    show(live);
    if (live.version !== version) await refresh();
    if (hasFailed) showMessage('');
    hasFailed = false;
    setTimeout(poll, 100);
  } catch (error) {
    hasFailed = true;
    showError(error);
    setTimeout(poll, 2000);
  }
}

poll();
