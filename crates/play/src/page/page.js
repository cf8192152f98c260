'use strict';
// The server sends the list of parameters; this script contains no parameter names.

const byId = id => document.getElementById(id);
// Angles of a knob, degrees: whole range, and start.
const RANGE = 270, START = 135;
// Lowest level that a meter shows, dB.
const MIN_DB = -60;

// Time after which a server that does not respond counts as gone, ms. Loading a file takes longer than the rest.
const POLL_TIMEOUT = 4000, LOAD_TIMEOUT = 60000;
// Maximum size of an added file, bytes; the server checks it.
const MAX_UPLOAD = 32 << 20;

// The server refused a request.
class Refused extends Error {
  constructor(status, text) { super(text); this.status = status; }
}

async function send(path, options, timeout) {
  const response = await fetch(path, { ...options, signal: AbortSignal.timeout(timeout) });
  const json = await response.json();
  if (!response.ok) throw new Refused(response.status, json.error);
  return json;
}

// GET without a body, else POST.
const request = (path, body) => body === undefined ? send(path, {}, POLL_TIMEOUT) : send(path, {
  method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body),
}, LOAD_TIMEOUT);

function showMessage(text, isError) {
  byId('message').textContent = text;
  byId('message').classList.toggle('bad', Boolean(isError));
}

// True while the server cannot be reached or refuses this page. Then nothing on the page can be used.
let isGone = false;
function setGone(text) {
  isGone = Boolean(text);
  document.querySelector('main').inert = isGone;
  document.body.classList.toggle('gone', isGone);
  byId('gone').hidden = !isGone;
  // An alert is read when its text changes.
  if (byId('gone').textContent !== text) byId('gone').textContent = text;
}

function showError(error) {
  if (!(error instanceof Refused)) {
    setGone('No connection to punctual. The values below are old, and the sound may still be playing. Check the network, and that punctual is running; this page connects again by itself.');
  } else if (error.status === 401) {
    setGone('This page may not control punctual any more: open the link that punctual prints now, or scan its QR code.');
  } else showMessage(error.message, true);
}

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

const label = name => name.replace(/_(db|dbu|hz|ms|s)$/, '').replaceAll('_', ' ');
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
  // A share without a unit.
  if (!parameter.unit && parameter.most === 1) return `${Math.round(value * 100)} %`;
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
    // A pedal with keys must not turn the knob that was touched last.
    if (event.pointerType === 'mouse') input.focus();
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
  select.ariaLabel = `${parameter.name.split('.')[0]} ${name}`;
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
      const head = make('div', { className: 'head' }, make('h2', { textContent: label(group) }));
      const panel = make('section', { className: 'panel', ariaLabel: label(group) }, head, row);
      panels.set(group, { panel, row });
      byId('panels').append(panel);
    }
    const { panel, row } = panels.get(group);
    const box = KINDS[parameter.kind](parameter, label(key), label(group));
    if (key === 'on') panel.firstChild.append(box); else row.append(box);
    boxes.set(parameter.name, box);
    box.show(parameter.value);
  }
  const option = ([value, text]) => new Option(text, value);
  byId('target').replaceChildren(
    make('optgroup', { label: 'Actions' }, ...Object.entries(actions).map(option)),
    make('optgroup', { label: 'Parameters' }, ...parameters.map(({ name }) => option([name, targetName(name)]))),
  );
}

// Replacing a node loses a click on it that has begun, the focus and the selection.
function showChildren(element, children) {
  const shown = element.cloneNode();
  shown.replaceChildren(...children);
  if (!shown.isEqualNode(element)) element.replaceChildren(...shown.childNodes);
}

// Descriptions of the actions that a pedal can do, by name.
let actions = {};
const targetName = name => actions[name] ?? name.split('.').map(label).join(' ');

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
  actions = state.actions;
  if (!boxes.size) build(state.parameters);
  const isStale = name => unsent.has(name) || sending === name || staleUntil.get(name) >= number;
  for (const { name, value } of state.parameters) if (!isStale(name)) boxes.get(name).show(value);
  fill(byId('preset'), state.presets, state.playing.preset);
  fill(byId('model1'), state.models, state.playing.models[0]);
  fill(byId('model2'), state.models, state.playing.models[1]);
  fill(byId('cabinet'), state.cabinets, state.playing.cabinet);
  showStates(state);
  showDetails(state.playing);
  showMidi(state);
  showOthers(state);
  document.body.dataset.ready = 'true';
}

let playing = { side: 'a', bypass: false };
function showStates({ side, sides, bypass, can_undo, can_redo, playing: { preset } }) {
  playing = { side, bypass };
  for (const one of ['a', 'b']) {
    byId(`side-${one}`).ariaPressed = side === one;
    byId(`side-${one}`).ariaLabel = `State ${one.toUpperCase()}: ${sides[one] ?? 'not saved'}`;
  }
  byId('copy').textContent = `Copy to ${side === 'a' ? 'B' : 'A'}`;
  byId('bypass').ariaPressed = bypass;
  document.body.classList.toggle('bypassed', bypass);
  byId('undo').disabled = !can_undo;
  byId('redo').disabled = !can_redo;
  document.title = preset ? `${preset.replace(/\.toml$/, '')} \u2013 punctual amp` : 'punctual amp';
}

const decibels = (value, unit) => `${value > 0 ? '+' : ''}${value.toFixed(1)} ${unit}`.replace('-', '\u2212');

function aboutModel(model) {
  if (!model) return [];
  const isResampled = model.resampling_delay_ms !== null;
  return [
    model.name ?? 'a model without a name',
    model.author && `by ${model.author}`,
    model.gear,
    model.architecture,
    model.loudness_db === null ? 'loudness unknown' : `loudness ${decibels(model.loudness_db, 'dB')}`,
    model.input_dbu !== null && `input ${decibels(model.input_dbu, 'dBu')}`,
    model.output_dbu !== null && `output ${decibels(model.output_dbu, 'dBu')}`,
    isResampled && make('strong', { className: 'notice', textContent: `trained at ${model.rate_hz} Hz, resampled to ${model.chain_rate_hz} Hz: ${model.resampling_delay_ms.toFixed(2)} ms later` }),
    ...model.warnings.map(text => make('strong', { className: 'notice', textContent: text })),
  ];
}

function aboutCabinet(ir) {
  const isResampled = ir.rate_hz !== ir.chain_rate_hz;
  return [
    `${ir.length_ms.toFixed(0)} ms`, ir.channels > 1 ? 'stereo' : 'mono',
    isResampled && make('strong', { className: 'notice', textContent: `recorded at ${ir.rate_hz} Hz, resampled to ${ir.chain_rate_hz} Hz` }),
  ];
}

function showDetails({ model_details: [first, second], cabinet_details }) {
  const show = (id, name, parts) => {
    const known = parts.filter(Boolean);
    const separated = known.flatMap((part, index) => index ? [' \u00b7 ', part] : [part]);
    showChildren(byId(id), known.length ? [make('b', { textContent: `${name}: ` }), ...separated] : []);
  };
  show('about-model1', 'Model', aboutModel(first));
  show('about-model2', 'Second model', aboutModel(second));
  show('about-cabinet', 'Cabinet', cabinet_details.flatMap(aboutCabinet));
}

function showMidi({ midi, preset_midi }) {
  byId('midi-off').hidden = midi.is_open;
  byId('learn').hidden = !midi.is_open;
  byId('cancel').hidden = midi.learning === null;
  byId('learn').classList.toggle('on', midi.learning !== null);
  if (midi.learning !== null) byId('target').value = midi.learning;
  const forget = (controller, target) => {
    const button = make('button', { textContent: 'Remove', ariaLabel: `Remove controller ${controller}, ${targetName(target)}` });
    button.addEventListener('click', () => act({ do: 'forget', controller }));
    return button;
  };
  showChildren(byId('assignments'), [
    ...midi.learned.map(([controller, target]) => make('li', {}, `Controller ${controller}: ${targetName(target)} `, forget(controller, target))),
    ...preset_midi.map(([controller, target]) => make('li', {}, `Controller ${controller}: ${targetName(target)} (from the preset)`)),
  ]);
}

function showOthers({ others, others_count }) {
  byId('others').hidden = !others_count;
  byId('others').firstElementChild.textContent = others_count === 1 ? '1 file that cannot be played' : `${others_count} files that cannot be played`;
  showChildren(byId('others').lastElementChild, [
    ...others.map(({ file, reason }) => make('li', {}, make('b', { textContent: file }), `: ${reason}`)),
    ...others_count > others.length ? [make('li', { textContent: `and ${others_count - others.length} more` })] : [],
  ]);
}

async function act(body) {
  if (isGone) return;
  try {
    showMessage((await request('act', body)).message);
  } catch (error) { showError(error); }
  refresh().catch(showError);
}

for (const button of document.querySelectorAll('[data-act]')) button.addEventListener('click', () => act({ do: button.dataset.act }));
const toggleBypass = () => act({ do: 'bypass', on: !playing.bypass });
const compare = () => act({ do: 'side', side: playing.side === 'a' ? 'b' : 'a' });
byId('bypass').addEventListener('click', toggleBypass);
for (const side of ['a', 'b']) byId(`side-${side}`).addEventListener('click', () => act({ do: 'side', side }));
byId('learn').addEventListener('submit', event => {
  event.preventDefault();
  act({ do: 'learn', target: byId('target').value });
});
byId('cancel').addEventListener('click', () => act({ do: 'learn', target: null }));

const KEYS = { b: toggleBypass, a: compare };
document.addEventListener('keydown', event => {
  if (event.altKey || event.metaKey && event.key !== 'z' || document.querySelector('dialog[open]')) return;
  const isTyping = event.target.matches('input[name]');
  const isList = event.target.matches('select');
  let does;
  // A page-turning pedal sends these, whatever was touched last.
  if (event.key === 'PageDown' && !isTyping) does = () => act({ do: 'next' });
  else if (event.key === 'PageUp' && !isTyping) does = () => act({ do: 'previous' });
  else if ((event.ctrlKey || event.metaKey) && !isTyping) {
    const isRedo = event.key === 'y' || event.key.toLowerCase() === 'z' && event.shiftKey;
    if (isRedo) does = () => act({ do: 'redo' });
    else if (event.key === 'z') does = () => act({ do: 'undo' });
  } else if (!isTyping && !isList) does = KEYS[event.key.toLowerCase()];
  if (!does) return;
  event.preventDefault();
  // A key that is held down repeats.
  if (!event.repeat) does();
});

function askToReplace(name) {
  const dialog = byId('replace');
  byId('replace-text').textContent = `${name} exists already. Replace it?`;
  dialog.returnValue = '';
  dialog.showModal();
  return new Promise(resolve => dialog.addEventListener('close', () => resolve(dialog.returnValue === 'yes'), { once: true }));
}

// Adds a file to the folder. Returns its name and slot; undefined if the old one is kept.
async function add(file, overwrite) {
  if (file.size > MAX_UPLOAD) throw new Refused(413, `${file.name} is larger than 32 MiB`);
  const body = await file.arrayBuffer().catch(() => { throw new Refused(400, `${file.name} cannot be read: drop files, not folders`); });
  const query = `name=${encodeURIComponent(file.name)}${overwrite ? '&overwrite=1' : ''}`;
  try {
    // A slow network may need long for a large file.
    return await send(`upload?${query}`, { method: 'POST', headers: { 'Content-Type': 'application/octet-stream' }, body }, LOAD_TIMEOUT * 10);
  } catch (error) {
    if (error.status !== 409 || overwrite) throw error;
    return await askToReplace(file.name) ? add(file, true) : undefined;
  }
}

async function addAll(files) {
  const added = [], problems = [];
  for (const file of files) {
    showMessage(`adding ${file.name}`);
    try {
      const one = await add(file);
      if (one) added.push(one);
    } catch (error) {
      if (!(error instanceof Refused) || error.status === 401) return showError(error);
      problems.push(error.message);
    }
  }
  try {
    // A single file is heard at once; undo takes it back.
    if (files.length === 1 && added.length === 1) await request('choose', added[0]);
  } catch (error) { problems.push(error.message); }
  const names = added.map(({ file }) => file).join(', ');
  const played = files.length === 1 && !problems.length ? 'was added and is playing' : added.length === 1 ? 'was added' : 'were added';
  showMessage([names && `${names} ${played}`, ...problems].filter(Boolean).join('; '), problems.length);
  refresh().catch(showError);
}

byId('files').addEventListener('change', async event => {
  const files = [...event.target.files];
  // The same file can be chosen again.
  event.target.value = '';
  if (files.length) await addAll(files);
});
const hasFiles = event => event.dataTransfer.types.includes('Files');
// Without this, the browser would open a file that is dropped next to the page.
for (const kind of ['dragenter', 'dragover']) {
  document.addEventListener(kind, event => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    document.body.classList.toggle('dropping', !isGone);
  });
}
document.addEventListener('dragleave', event => { if (!event.relatedTarget) document.body.classList.remove('dropping'); });
document.addEventListener('drop', event => {
  document.body.classList.remove('dropping');
  if (!hasFiles(event)) return;
  event.preventDefault();
  if (!isGone) addAll([...event.dataTransfer.files]);
});

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
  byId(id).ariaValueText = text;
  byId(id).ariaValueNow = Math.round(Number(byId(id).ariaValueMin) + (byId(id).ariaValueMax - byId(id).ariaValueMin) * Math.min(Math.max(peak, 0), 1));
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

let clippedUntil = 0, clips = 0, notice;
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
  lamp('xruns', live.xruns ? 'bad' : 'good', live.xruns ? `${live.xruns.toLocaleString('en-US')} xrun${live.xruns > 1 ? 's' : ''}` : 'no xruns');
  byId('tuner').className = live.note ? Math.abs(live.note.cents) <= 3 ? 'active in-tune' : 'active' : '';
  byId('note').textContent = live.note ? live.note.name : '\u2013';
  byId('tuner').querySelector('i').style.left = live.note ? percent(0.5 + live.note.cents / 100) : '50%';
  byId('cents').textContent = live.note ? `${live.note.cents >= 0 ? '+' : '\u2212'}${Math.abs(live.note.cents).toFixed(1)} cents` : '';
  // Messages from before this page was opened are not shown.
  if (notice !== undefined && live.notice.number !== notice) showMessage(live.notice.text);
  notice = live.notice.number;
  byId('ended').hidden = !live.ended;
  byId('ended').textContent = live.ended ?? '';
}

async function poll() {
  let delay = 100;
  try {
    const live = await request('live');
    show(live);
    if (live.version !== version) await refresh();
    if (isGone) {
      setGone('');
      showMessage('connected again');
    }
  } catch (error) {
    showError(error);
    delay = 2000;
  }
  setTimeout(poll, delay);
}

poll();
