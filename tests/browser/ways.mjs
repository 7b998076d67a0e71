// Every way that a page has to send something to another address, or to read from it.
//
// The functions run within a page. Each gets where the server is, the marked body of a request, the id of a response
// that is stored there, and the page's own server; it settles when the browser is done with it, and gives what the page
// could read.

const post = (options) =>
  `async (at, body) => {
    const blob = (type) => new Blob([body], type ? { type } : {});
    const form = () => { const form = new FormData(); form.append("body", body); return form; };
    const answer = await fetch(at + "/v1/responses", { method: "POST", ...(${options}) });
    return answer.text();
  }`;

const get = (path, options = "{}") =>
  `async (at, body, id) => (await fetch(at + ${path}, ${options})).text()`;

const xhr = (method, path, type) =>
  `(at, body, id) => new Promise((resolve) => {
    const request = new XMLHttpRequest();
    request.open("${method}", at + ${path});
    if (${JSON.stringify(type)}) request.setRequestHeader("content-type", ${JSON.stringify(type)});
    request.onloadend = () => resolve(request.responseText);
    request.send(body);
  })`;

const beacon = (data) => `async (at, body) => { navigator.sendBeacon(at + "/v1/responses", ${data}); return ""; }`;

// What it reads is what the other page in the frame shows, if that can be seen.
const framed = (fill) =>
  `(at, body, id) => new Promise((resolve) => {
    const frame = document.createElement("iframe");
    frame.name = "frame" + Math.random();
    document.body.append(frame);
    frame.onload = () => {
      let text = "";
      try { text = frame.contentDocument?.documentElement.textContent ?? ""; } catch {}
      frame.remove();
      resolve(text);
    };
    (${fill})(frame);
  })`;

// A form as text/plain is NAME=VALUE: the equals sign goes into a string.
const form = (type) =>
  framed(`(frame) => {
    const [name, value] = body.split("=");
    const form = document.createElement("form");
    Object.assign(form, { method: "post", enctype: "${type}", action: at + "/v1/responses", target: frame.name });
    const input = document.createElement("input");
    Object.assign(input, { type: "hidden", name, value });
    form.append(input);
    document.body.append(form);
    form.submit();
    form.remove();
  }`);

const element = (tag, attribute, path) =>
  `(at, body, id) => new Promise((resolve) => {
    const element = document.createElement("${tag}");
    if ("${tag}" === "link") element.rel = "stylesheet";
    element.onload = element.onerror = () => { element.remove(); resolve(""); };
    element["${attribute}"] = at + ${path};
    document.body.append(element);
  })`;

const events = `(at, body, id) => new Promise((resolve) => {
  const source = new EventSource(at + "/v1/responses/" + id + "?stream=true");
  let seen = "";
  source.onopen = () => (seen += "opened");
  source.onmessage = (event) => (seen += event.data);
  source.onerror = () => { source.close(); resolve(seen); };
})`;

const socket = `(at, body) => new Promise((resolve) => {
  const socket = new WebSocket((at || location.origin).replace("http", "ws") + "/v1/responses");
  let seen = "";
  socket.onopen = () => { seen = "opened"; socket.send(body); socket.close(); };
  socket.onclose = () => resolve(seen);
})`;

const worker = `(at, body) => new Promise((resolve) => {
  const code = "onmessage = async ({ data: [at, body] }) => {" +
    " const options = { method: 'POST', mode: at.own ? 'same-origin' : 'no-cors', body: new Blob([body]) };" +
    " postMessage(await fetch(at.url, options).then((answer) => answer.text()).catch(() => '')); }";
  const worker = new Worker(URL.createObjectURL(new Blob([code], { type: "text/javascript" })));
  worker.onmessage = ({ data }) => { worker.terminate(); resolve(data); };
  worker.postMessage([{ url: (at || location.origin) + "/v1/responses", own: at === "" }, body]);
})`;

// A frame without an origin.
const sandboxed = `(at, body) => new Promise((resolve) => {
  const frame = document.createElement("iframe");
  frame.sandbox = "allow-scripts";
  const call = [(at || location.origin) + "/v1/responses", { method: "POST", mode: "no-cors" }];
  frame.srcdoc = "<script>const [url, options] = " + JSON.stringify(call) + "; options.body = new Blob([" +
    JSON.stringify(body) + "]); fetch(url, options).then((answer) => answer.text()).catch(() => '')" +
    ".then((text) => parent.postMessage('frame:' + text, '*'))</" + "script>";
  const hear = ({ data }) => {
    if (!String(data).startsWith("frame:")) return;
    removeEventListener("message", hear);
    frame.remove();
    resolve(data.slice(6));
  };
  addEventListener("message", hear);
  document.body.append(frame);
})`;

const redirected = `async (at, body, id, own) => {
  const to = encodeURIComponent((at || location.origin) + "/v1/responses");
  const options = { method: "POST", mode: "no-cors", body: new Blob([body]) };
  return (await fetch(own + "/redirect?to=" + to, options)).text();
}`;

// `arrives`: a page of another origin gets this through to a server that takes whatever it is sent. The others ask first.
export const WAYS = [
  { name: "fetch no-cors, no type", run: post(`{ mode: "no-cors", body: blob() }`), arrives: true },
  { name: "fetch no-cors, text/plain", run: post(`{ mode: "no-cors", body }`), arrives: true },
  { name: "fetch no-cors, form", run: post(`{ mode: "no-cors", body: new URLSearchParams({ body }) }`), arrives: true },
  { name: "fetch no-cors, multipart", run: post(`{ mode: "no-cors", body: form() }`), arrives: true },
  { name: "fetch no-cors, kept alive", run: post(`{ mode: "no-cors", keepalive: true, body: blob() }`), arrives: true },
  { name: "fetch no-cors, JSON", run: post(`{ mode: "no-cors", body: blob("application/json") }`), arrives: true },
  { name: "fetch cors, no type", run: post(`{ body: blob() }`), arrives: true },
  { name: "fetch cors, with cookies", run: post(`{ credentials: "include", body: blob() }`), arrives: true },
  { name: "fetch cors, JSON", run: post(`{ headers: { "content-type": "application/json" }, body }`) },
  { name: "fetch from a worker", run: worker, arrives: true },
  { name: "fetch from a frame without origin", run: sandboxed, arrives: true },
  { name: "fetch by way of a redirect", run: redirected, arrives: true },
  { name: "XMLHttpRequest, no type", run: xhr("POST", `"/v1/responses"`, ""), arrives: true },
  { name: "XMLHttpRequest, JSON", run: xhr("POST", `"/v1/responses"`, "application/json") },
  { name: "beacon, text/plain", run: beacon("body"), arrives: true },
  { name: "beacon, no type", run: beacon("new Blob([body])"), arrives: true },
  { name: "beacon, JSON", run: beacon(`new Blob([body], { type: "application/json" })`) },
  { name: "form, text/plain", run: form("text/plain"), arrives: true },
  { name: "form, urlencoded", run: form("application/x-www-form-urlencoded"), arrives: true },
  { name: "form, multipart", run: form("multipart/form-data"), arrives: true },
  { name: "socket", run: socket, arrives: true },
  { name: "fetch DELETE", run: get(`"/v1/responses/" + id`, `{ method: "DELETE" }`) },
  { name: "XMLHttpRequest DELETE", run: xhr("DELETE", `"/v1/responses/" + id`, "") },
  { name: "GET of the models", run: get(`"/v1/models"`), arrives: true },
  { name: "GET of the models, no-cors", run: get(`"/v1/models"`, `{ mode: "no-cors" }`), arrives: true },
  { name: "GET of a response", run: get(`"/v1/responses/" + id`), arrives: true },
  { name: "GET of its input", run: get(`"/v1/responses/" + id + "/input_items"`), arrives: true },
  { name: "event source", run: events, arrives: true },
  { name: "frame", run: framed(`(frame) => (frame.src = at + "/v1/responses/" + id)`), arrives: true },
  { name: "image", run: element("img", "src", `"/v1/models"`), arrives: true },
  { name: "script", run: element("script", "src", `"/v1/models"`), arrives: true },
  { name: "stylesheet", run: element("link", "href", `"/v1/models"`), arrives: true },
];

// What the page could read; nothing, where the browser refused.
export const attempt = (run) => `(...given) => {
  const patience = new Promise((resolve) => setTimeout(resolve, 20000, "no answer"));
  return Promise.race([(${run})(...given).catch(() => ""), patience]);
}`;
