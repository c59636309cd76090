// SPDX-License-Identifier: Apache-2.0

// The program of this folder with the TypeScript SDK, version 2: an MCP client that
// uses every feature of the protocol, step by step, and prints what it got as JSON
// lines. doc.go describes flags, steps and lines.

import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { Client, LOG_LEVEL_META_KEY, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const patience = 30_000; // milliseconds, for a step

// node takes -url for several short options, so the flags are read as --url.
const args = process.argv.slice(2).map((a) => a.replace(/^-(url|token|era|prefix|steps)$/, "--$1"));
const text = { type: "string", default: "" };
const flags = parseArgs({ args, options: { url: text, token: text, era: text, prefix: text, steps: text } }).values;
const modern = flags.era === "modern";

/** Ears keep what a server says and asks by itself. */
const ears = {
  heard: {},
  news: [], // called when there is something new
  first: {}, // called once, by kind
  calls: 0,
  token: "",

  hear(kind, what) {
    (this.heard[kind] ??= []).push(what);
    this.first[kind]?.();
    delete this.first[kind];
    for (const wake of this.news.splice(0)) wake();
  },

  /** Begins a call, and returns its progress token. What an earlier call still reports is not heard. */
  listen() {
    this.token = `tour-${++this.calls}`;
    return this.token;
  },

  forget() {
    this.heard = {};
    this.first = {};
  },

  /** Waits for a number of things of each kind, and returns what was heard. */
  async await(least, deadline) {
    while (Object.entries(least).some(([kind, n]) => (this.heard[kind] ?? []).length < n)) {
      let timer;
      const late = new Promise((end) => (timer = setTimeout(end, deadline - Date.now(), true)));
      const ended = await Promise.race([late, new Promise((wake) => this.news.push(wake))]);
      clearTimeout(timer);
      if (ended) break;
    }
    return this.heard;
  },
};

/** Returns params without what differs from run to run. */
function without({ _meta, progressToken, elicitationId, ...rest }) {
  return rest;
}

/** Answers a field of a form: its default, its first choice, or something of its type. */
function value(schema) {
  if ("default" in schema) return schema.default;
  if (schema.enum) return schema.enum[0];
  const choices = schema.oneOf ?? schema.anyOf;
  if (choices) return choices[0].const;
  switch (schema.type) {
    case "array":
      return [value(schema.items)];
    case "boolean":
      return true;
    case "integer":
    case "number":
      return 7;
  }
  return { email: "tour@example.com", uri: "https://example.com/", date: "2026-11-30" }[schema.format] ?? "tour";
}

function newClient() {
  const changed = (list) => ({ autoRefresh: false, onChanged: () => ears.hear("changed", list) });
  const client = new Client(
    { name: "tour", version: "1" },
    {
      capabilities: { roots: { listChanged: true }, sampling: {}, elicitation: { form: {}, url: {} } },
      versionNegotiation: { mode: modern ? { pin: "2026-07-28" } : "legacy" },
      listChanged: { tools: changed("tools"), prompts: changed("prompts"), resources: changed("resources") },
    },
  );
  client.setRequestHandler("roots/list", () => ({
    roots: [
      { uri: "file:///tour/one", name: "one" },
      { uri: "file:///tour/two", name: "two" },
    ],
  }));
  client.setRequestHandler("sampling/createMessage", ({ params }) => {
    ears.hear("asked", { "sampling/createMessage": without(params) });
    return { role: "assistant", model: "tour", stopReason: "endTurn", content: { type: "text", text: "sampled" } };
  });
  client.setRequestHandler("elicitation/create", ({ params }) => {
    ears.hear("asked", { "elicitation/create": without(params) });
    if (params.mode === "url") return { action: "accept" };
    const fields = Object.entries(params.requestedSchema.properties ?? {});
    return { action: "accept", content: Object.fromEntries(fields.map(([name, schema]) => [name, value(schema)])) };
  });
  client.setNotificationHandler("notifications/message", ({ params }) => ears.hear("log", without(params)));
  client.setNotificationHandler("notifications/progress", ({ params }) => {
    if (params.progressToken === ears.token) ears.hear("progress", without(params));
  });
  client.setNotificationHandler("notifications/resources/updated", ({ params }) => ears.hear("updated", params.uri));
  return client;
}

let level = ""; // of the log, in the modern era a member of each call
const subscriptions = new Map(); // of the modern era, by URI

function call(client, step, signal) {
  const _meta = { progressToken: ears.listen() };
  if (modern && level) _meta[LOG_LEVEL_META_KEY] = level;
  const params = { name: flags.prefix + step.name, arguments: step.arguments ?? {}, _meta };
  return client.callTool(params, { signal, timeout: patience });
}

/** Calls a tool, and takes it back when it reports its first progress. */
async function cancel(client, step) {
  const stop = new AbortController();
  ears.first.progress = () => stop.abort();
  try {
    return await call(client, step, stop.signal);
  } catch (error) {
    if (stop.signal.aborted) return "cancelled";
    throw error;
  }
}

async function list(client, of) {
  const [method, key] = {
    tools: ["listTools", "tools"],
    resources: ["listResources", "resources"],
    templates: ["listResourceTemplates", "resourceTemplates"],
    prompts: ["listPrompts", "prompts"],
  }[of];
  return { items: (await client[method]())[key] };
}

async function subscribe(client, uri) {
  if (!modern) return void (await client.subscribeResource({ uri }));
  subscriptions.set(uri, await client.listen({ resourceSubscriptions: [uri] }));
}

async function unsubscribe(client, uri) {
  if (!modern) return void (await client.unsubscribeResource({ uri }));
  await subscriptions.get(uri).close();
}

/** Completes an argument of a prompt, or a variable of a template. */
function complete(client, { name, uri, argument, context }) {
  const ref = name ? { type: "ref/prompt", name: flags.prefix + name } : { type: "ref/resource", uri };
  return client.complete({ ref, argument, ...(context && { context: { arguments: context } }) });
}

/** Makes a step and returns the result of its request. */
async function make(client, step) {
  switch (step.do) {
    case "list":
      return list(client, step.name);
    case "call":
      return call(client, step);
    case "cancel":
      return cancel(client, step);
    case "read":
      return client.readResource({ uri: step.uri });
    case "subscribe":
      return subscribe(client, step.uri);
    case "unsubscribe":
      return unsubscribe(client, step.uri);
    case "prompt":
      return client.getPrompt({ name: flags.prefix + step.name, arguments: step.arguments ?? {} });
    case "complete":
      return complete(client, step);
    case "level":
      level = step.level;
      return void (modern || (await client.setLoggingLevel(level))); // otherwise each call says it
    case "ping":
      return void (await client.ping());
  }
  throw new Error(`no such step: ${step.do}`);
}

/** Prints a line, in which what differs from run to run is replaced, and what has no order has one. */
function print(line) {
  for (const kind of ["asked", "updated", "changed"]) {
    const list = line.heard?.[kind]?.map((what) => JSON.stringify(what)).sort();
    if (!list) continue;
    const some = kind === "asked" ? list : new Set(list); // how often depends on the time
    line.heard[kind] = [...some].map((what) => JSON.parse(what));
  }
  const variable = /\d{1,2}:\d{2}:\d{2}( [AP]M)?|for session [-\w]+/g;
  process.stdout.write(JSON.stringify(line).replaceAll(variable, "VARIABLE") + "\n");
}

const client = newClient();
const headers = flags.token ? { Authorization: `Bearer ${flags.token}` } : {};
const transport = new StreamableHTTPClientTransport(new URL(flags.url), { requestInit: { headers } });
await client.connect(transport, { timeout: patience });
print({
  step: { do: "connect" },
  got: { protocolVersion: client.getNegotiatedProtocolVersion(), capabilities: client.getServerCapabilities() },
});
for (const step of JSON.parse(readFileSync(flags.steps, "utf8"))) {
  if (step.era && step.era !== flags.era) continue;
  const deadline = Date.now() + patience;
  ears.forget();
  let got;
  try {
    got = (await make(client, step)) ?? null;
  } catch (error) {
    got = { error: { code: error.code, message: error.message } };
  }
  print({ step, got, heard: await ears.await(step.await ?? {}, deadline) });
}
if (!modern) await transport.terminateSession();
await client.close();
