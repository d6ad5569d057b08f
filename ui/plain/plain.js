// The page without a build: one prompt, its tokens, the last requests. Texts are set by textContent only.
'use strict';
const $ = (id) => document.getElementById(id);
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
let info = null, stopper = null, asking = null;

function say(text) { $('state').textContent = text; }

// Shows the form for the key, once for all calls that wait for it.
function ask_key() {
  asking ??= new Promise((done) => {
    $('key').hidden = false;
    $('secret').focus();
    $('key').onsubmit = (event) => {
      event.preventDefault();
      sessionStorage.setItem('key', $('secret').value.trim());
      $('secret').value = '';
      $('key').hidden = true;
      asking = null;
      done();
    };
  });
  return asking;
}

// fetch() with the key; asks for one as often as the server does.
async function call(path, body, signal) {
  for (;;) {
    const headers = {}, key = sessionStorage.getItem('key');
    if (key) headers.Authorization = 'Bearer ' + key;
    if (body) headers['Content-Type'] = 'application/json';
    const answer = await fetch(path, {method: body ? 'POST' : 'GET', headers, body: body && JSON.stringify(body), signal});
    if (answer.status !== 401) return answer;
    say('A valid API key is needed.');
    await ask_key();
    say('');
  }
}

async function get(path) {
  const answer = await call(path);
  if (!answer.ok) throw new Error(await problem(answer));
  return answer.json();
}

async function problem(answer) {
  const text = await answer.text();
  try {
    return JSON.parse(text).error.message;
  } catch {
    return `${answer.status} ${answer.statusText}`;
  }
}

function add_token(text, logprob) {
  const box = document.createElement('span'), p = Math.exp(logprob);
  box.className = 'token';
  box.textContent = text === '' ? '\u00a0' : text.replaceAll('\n', '\u21b5');
  if (Number.isFinite(p)) {
    box.classList.add('p' + (p < 0.1 ? 0 : p < 0.4 ? 1 : p < 0.8 ? 2 : 3));
    const share = document.createElement('small');
    share.textContent = (100 * p).toFixed(p < 0.1 ? 1 : 0) + '%';
    box.append(share);
  }
  $('answer').append(box);
}

// One frame of the stream. Returns why the answer ended, once it has.
function show(frame) {
  if (frame.error) throw new Error(frame.error.message);
  const choice = frame.choices?.[0];
  if (!choice) return null;
  const probs = choice.logprobs;
  if (probs?.content?.length) for (const t of probs.content) add_token(t.token, t.logprob);
  else if (probs?.tokens?.length) probs.tokens.forEach((t, i) => add_token(t, probs.token_logprobs[i]));
  else {
    const text = choice.text ?? (choice.delta?.reasoning_content ?? '') + (choice.delta?.content ?? '');
    if (text) add_token(text, NaN);
  }
  return choice.finish_reason ?? null;
}

async function* frames(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const {done, value} = await reader.read();
    if (done) return;
    const parts = (rest + value).split('\n\n');
    rest = parts.pop();
    for (const part of parts)
      if (part.startsWith('data: ') && part !== 'data: [DONE]') yield JSON.parse(part.slice(6));
  }
}

async function send() {
  if (stopper) return;
  const prompt = $('prompt').value;
  stopper = new AbortController();
  $('send').disabled = true;
  $('stop').disabled = false;
  $('answer').replaceChildren();
  say('Waiting for the first token.');
  try {
    info ??= await get('/api/info');
    const path = info.chat ? '/v1/chat/completions' : '/v1/completions';
    const body = info.chat ? {messages: [{role: 'user', content: prompt}], logprobs: true, top_logprobs: 0}
                           : {prompt, logprobs: 0};
    const answer = await call(path, {...body, stream: true, max_tokens: 400}, stopper.signal);
    if (!answer.ok) throw new Error(await problem(answer));
    let why = 'cut off';
    for await (const frame of frames(answer.body)) {
      why = show(frame) ?? why;
      say('The model is writing.');
    }
    say(`${$('answer').childElementCount} tokens; the answer ended by: ${why}.`);
  } catch (error) {
    say(error.name === 'AbortError' ? 'Stopped.' : `Failed: ${error.message}`);
  }
  stopper = null;
  $('send').disabled = false;
  $('stop').disabled = true;
  refresh();
}

const ms = (value) => (value ?? 0).toFixed(1);

async function refresh() {
  try {
    const [now, list] = [await get('/api/snapshot'), await get('/api/requests')];
    const pages = (now.pools ?? []).map((pool) => `${pool.used} of ${pool.total} pages in use, ${pool.cached} cached`);
    $('now').textContent =
      [`${now.num_running} running, ${now.num_waiting} waiting, up to ${now.max_sequences} at once`, ...pages].join('; ');
    $('requests').replaceChildren(...[...list.live, ...list.ended].slice(0, 12).map((r) => {
      const row = document.createElement('tr');
      const cells = [r.label, r.finish_reason ?? r.state, r.prompt_tokens, r.completion_tokens, ms(r.queue_ms),
                     ms(r.prefill_ms), ms(r.decode_ms)];
      for (const cell of cells) row.insertCell().textContent = cell;
      return row;
    }));
  } catch (error) {
    $('now').textContent = error.message;
  }
}

async function start() {
  for (;;) {
    try {
      const ready = await call('/ready');
      if (ready.ok) break;
      const {progress} = await ready.json();
      $('model').textContent = `loading the model: ${Math.round(100 * (progress ?? 0))}%`;
    } catch {
      $('model').textContent = 'the server does not answer';
    }
    await sleep(1000);
  }
  try {
    info = await get('/api/info');
    $('model').textContent = `${info.model.name}, ${info.backend.description}, context of ${info.limits.context} tokens`;
  } catch (error) {
    $('model').textContent = error.message;
  }
  refresh();
}

$('ask').onsubmit = (event) => { event.preventDefault(); send(); };
$('prompt').onkeydown = (event) => { if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) send(); };
$('stop').onclick = () => stopper?.abort();
$('refresh').onclick = refresh;
start();
