'use strict';
// Everything that can be set comes from the program: the page knows no parameter by name.

const at = id => document.getElementById(id);
const TURN = 270, START = 135;
const LEAST_DB = -60;

async function ask(path, body) {
  const answer = await fetch(path, body === undefined ? {} : {
    method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body),
  });
  const told = await answer.json();
  if (!answer.ok) throw new Error(told.error);
  return told;
}

function say(text, isBad) {
  at('said').textContent = text;
  at('said').classList.toggle('bad', Boolean(isBad));
}

const told = error => say(error instanceof TypeError ? 'punctual does not answer: is it still running?' : error.message, true);

// While a knob is dragged, only its newest value is worth sending; what is on its way is not overwritten by what was.
const waiting = new Map();
// Of each knob the last question that was asked before its value had arrived: answers up to that one are older.
const settled = new Map();
let version, sending, asked = 0;
async function set(name, value) {
  waiting.set(name, value);
  if (sending) return;
  while (waiting.size) {
    let value;
    [[sending, value]] = waiting;
    waiting.delete(sending);
    try {
      const answer = await ask('set', { name: sending, value });
      // A version further on is another page's, too: all of it is asked for.
      if (answer.version === version + 1) version = answer.version;
    } catch (error) { told(error); }
    settled.set(sending, asked);
  }
  sending = undefined;
}

const words = name => name.replace(/_(db|ms|dbu)$/, '').replaceAll('_', ' ');
const make = (tag, more = {}, ...inside) => {
  const element = Object.assign(document.createElement(tag), more);
  element.append(...inside);
  return element;
};

function arc(from, to) {
  const point = share => {
    const angle = (START + TURN * share) * Math.PI / 180;
    return `${(32 + 26 * Math.cos(angle)).toFixed(2)} ${(32 + 26 * Math.sin(angle)).toFixed(2)}`;
  };
  return `M${point(from)}A26 26 0 ${(to - from) * TURN > 180 ? 1 : 0} 1 ${point(to)}`;
}

function written(parameter, value) {
  const digits = parameter.most - parameter.least <= 2 ? 2 : parameter.most - parameter.least <= 200 ? 1 : 0;
  return `${value > 0 && parameter.least < 0 ? '+' : ''}${value.toFixed(digits)}${parameter.unit ? ' ' + parameter.unit : ''}`.replace(/^-(0(\.0*)?)(?!\d|\.)/, '$1');
}

function knob(parameter, label, group) {
  const { name, least, most, value, about } = parameter;
  const step = (most - least) / (most - least <= 2 ? 100 : most - least <= 200 ? (most - least) * 10 : most - least);
  const input = make('input', { type: 'range', min: least, max: most, step, value, id: name, title: about, ariaLabel: `${group} ${label}` });
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  svg.setAttribute('viewBox', '0 0 64 64');
  svg.innerHTML = `<path d="${arc(0, 1)}"/><path class="to"/><circle cx="32" cy="32" r="18"/><line x1="32" y1="32"/>`;
  const [, to, , hand] = svg.children;
  const shown = make('span', { className: 'value', ariaHidden: true });
  const draw = () => {
    const share = (input.valueAsNumber - least) / (most - least);
    const rest = Math.min(Math.max((0 - least) / (most - least), 0), 1);
    to.setAttribute('d', arc(Math.min(share, rest), Math.max(share, rest)));
    const angle = (START + TURN * share) * Math.PI / 180;
    hand.setAttribute('x2', 32 + 15 * Math.cos(angle));
    hand.setAttribute('y2', 32 + 15 * Math.sin(angle));
    shown.textContent = written(parameter, input.valueAsNumber);
    input.ariaValueText = shown.textContent;
  };
  const turn = to => {
    input.value = to;
    draw();
    set(name, input.valueAsNumber);
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
  const box = make('label', { className: 'knob', title: about }, svg, input, make('span', { textContent: label }), shown);
  box.show = value => { input.value = value; draw(); };
  draw();
  return box;
}

function toggle(parameter, label, group) {
  const input = make('input', { type: 'checkbox', checked: parameter.value !== 0, id: parameter.name, ariaLabel: `${group} ${label}` });
  const box = make('label', { className: 'switch', title: parameter.about }, input, label);
  const mark = () => box.closest('.panel')?.classList.toggle('off', label === 'on' && !input.checked);
  input.addEventListener('change', () => { mark(); set(parameter.name, input.checked ? 1 : 0); });
  box.show = value => { input.checked = value !== 0; mark(); };
  return box;
}

function choice(parameter, label) {
  const select = make('select', { id: parameter.name }, ...parameter.words.map((word, place) => new Option(word, place)));
  select.value = parameter.value;
  select.addEventListener('change', () => set(parameter.name, Number(select.value)));
  const box = make('label', { className: 'pick', title: parameter.about }, label, select);
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
      at('panels').append(panel);
    }
    const { panel, row } = panels.get(group);
    const box = KINDS[parameter.kind](parameter, words(key), group);
    if (key === 'on') panel.firstChild.append(box); else row.append(box);
    boxes.set(parameter.name, box);
    box.show(parameter.value);
  }
}

function fill(select, names, chosen) {
  const all = chosen && !names.includes(chosen) ? [chosen, ...names] : names;
  // A list that somebody has open stays as it is.
  if (select.shown !== all.join()) {
    select.shown = all.join();
    select.replaceChildren(new Option(select.id === 'preset' ? 'choose' : 'none', ''), ...all.map(name => new Option(name, name)));
  }
  select.value = chosen ?? '';
}

// Answers may overtake each other: what was asked before the newest answer is not shown.
let newest = 0;
async function refresh() {
  const turn = ++asked;
  const state = await ask('state');
  if (turn < newest) return;
  newest = turn;
  version = state.version;
  if (!boxes.size) build(state.parameters);
  const isOlder = name => waiting.has(name) || sending === name || settled.get(name) >= turn;
  for (const { name, value } of state.parameters) if (!isOlder(name)) boxes.get(name).show(value);
  fill(at('preset'), state.presets, state.playing.preset);
  fill(at('model1'), state.models, state.playing.models[0]);
  fill(at('model2'), state.models, state.playing.models[1]);
  fill(at('cabinet'), state.cabinets, state.playing.cabinet);
  document.body.dataset.ready = 'true';
}

for (const select of document.querySelectorAll('select[data-what]')) {
  select.addEventListener('change', async () => {
    // Taken now: until it plays, what played may be shown again.
    const file = select.value;
    say(file && `loading ${file}`);
    try {
      await ask('choose', { what: select.dataset.what, file: file || null });
      say(file && `${file} plays`);
    } catch (error) { told(error); }
    refresh().catch(told);
  });
}

at('save').addEventListener('submit', async event => {
  event.preventDefault();
  try {
    const { saved } = await ask('save', { name: event.target.name.value });
    say(`saved as ${saved}`);
  } catch (error) { told(error); }
  refresh().catch(told);
});

const db = level => level > 0 ? Math.max(20 * Math.log10(level), -99.9) : -99.9;
const percent = share => `${Math.min(Math.max(share, 0), 1) * 100}%`;

function meter(id, mean, peak, text, isHot) {
  const [rms, mark] = at(id).querySelectorAll('i');
  rms.style.width = percent(mean);
  mark.style.left = percent(peak);
  at(id).querySelector('.value').textContent = text;
  at(id).classList.toggle('hot', isHot);
}

// At the output full scale is what the limiter leaves; more is cut off.
const level = (id, { peak, rms }, isHot) =>
  meter(id, 1 - db(rms) / LEAST_DB, 1 - db(peak) / LEAST_DB, `${db(peak) <= -99.9 ? '\u2212\u221e' : db(peak).toFixed(1)} dB`, isHot);

function lamp(id, className, text) {
  at(id).className = className;
  // One that is not lit says nothing.
  at(id).ariaHidden = !className;
  if (text) at(id).textContent = text;
}

let clippedUntil = 0, clips = 0;
function show(live) {
  at('stream').textContent = live.stream;
  level('in', live.input, live.input.peak >= 1);
  level('out', live.output, live.output.peak > 1);
  meter('load', live.load_mean, live.load_most, `${(live.load_most * 100).toFixed(0)} %`, live.load_most >= 1);
  lamp('gate', live.gate_is_open ? '' : 'on', live.gate_is_open ? 'gate open' : 'gate closed');
  lamp('limiter', live.limiter_gain < 0.999 ? 'on' : '', live.limiter_gain < 0.999 ? `limiting ${db(live.limiter_gain).toFixed(1)} dB` : 'limiting');
  if (live.clips > clips) clippedUntil = Date.now() + 2000;
  clips = live.clips;
  lamp('clip', Date.now() < clippedUntil ? 'bad' : '');
  const muted = live.muted.map((is, place) => is ? `model ${place + 1}` : '').filter(Boolean).join(' and ');
  lamp('muted', muted ? 'bad' : '', muted ? `${muted} muted: it made what is no number` : 'muted');
  lamp('xruns', live.xruns ? 'bad' : 'good', live.xruns ? `${live.xruns} xrun${live.xruns > 1 ? 's' : ''}` : 'no xrun');
  at('tuner').className = live.note ? Math.abs(live.note.cents) <= 3 ? 'heard true' : 'heard' : '';
  at('note').textContent = live.note ? live.note.name : '\u2013';
  at('tuner').querySelector('i').style.left = live.note ? percent(0.5 + live.note.cents / 100) : '50%';
  at('cents').textContent = live.note ? `${live.note.cents >= 0 ? '+' : '\u2212'}${Math.abs(live.note.cents).toFixed(1)} cents` : '';
  at('ended').hidden = !live.ended;
  at('ended').textContent = live.ended ?? '';
}

let isLost = false;
async function follow() {
  try {
    const live = await ask('live');
    show(live);
    if (live.version !== version) await refresh();
    if (isLost) say('');
    isLost = false;
    setTimeout(follow, 100);
  } catch (error) {
    isLost = true;
    told(error);
    setTimeout(follow, 2000);
  }
}

follow();
