// Dissects a capture in the Wireshark that wiregasm runs under Node, and prints what it finds as JSON lines.
//
//   node wiregasm.cjs FOLDER < request.json
//
// FOLDER holds node_modules/@goodtools/wiregasm. The request is an object:
//
//   capture    path of the capture
//   plugin     path of a Lua plugin, or null
//   prefs      preferences by name, as {"tcp.desegment_tcp_streams": "TRUE"}
//   order      numbers of frames to dissect, in this order and as often as they occur; null: every frame once
//   filters    display filters
//   keep       beginnings of the names of protocols whose trees are wanted; [""] keeps all
//
// The answer, each on its line:
//
//   {"version": "4.4.5"}
//   {"log": text}                                        whatever Wireshark or Lua prints, when it does
//   {"frame": number, "nodes": [...], "sources": [[name, base64], ...]}
//   {"filter": text, "frames": [[number, [column, ...]], ...]}
//   {"error": text}                                      the last line, if it comes
//
// A node is {label, filter, start, length, source, severity, nodes}.
"use strict";

const fs = require("node:fs");
const path = require("node:path");

const say = (line) => fs.writeSync(1, JSON.stringify(line) + "\n");

/** Passes on what is printed, except the level INFO of the log: only wiregasm turns it on. */
function log(text) {
  if (!/^ \*\* \(PID:\d+\) \S+ \[\w* ?INFO\]/.test(text)) say({ log: text });
}

/** The elements of a vector of the library, which is freed: nothing else frees it. */
function elements(vector) {
  const found = Array.from({ length: vector.size() }, (_, i) => vector.get(i));
  vector.delete();
  return found;
}

function node(item) {
  const { label, filter, start, length, data_source_idx: source, severity } = item;
  return { label, filter, start, length, source, severity, nodes: elements(item.tree).map(node) };
}

function frame(session, number, keep) {
  const found = session.getFrame(number);
  elements(found.comments);
  elements(found.follow).forEach(elements);
  const nodes = elements(found.tree).map(node);
  return {
    frame: number,
    nodes: nodes.filter((n) => keep.some((name) => n.filter.startsWith(name))),
    sources: elements(found.data_sources).map((source) => [source.name, source.data]),
  };
}

function matching(lib, session, filter) {
  const check = lib.checkFilter(filter);
  if (!check.ok) throw new Error(`filter ${filter}: ${check.error}`);
  const frames = elements(session.getFrames(filter, 0, 0).frames);
  return { filter, frames: frames.map((found) => [found.number, elements(found.columns)]) };
}

async function main(folder, request) {
  const dist = path.join(folder, "node_modules", "@goodtools", "wiregasm", "dist");
  for (const name of ["wiregasm.js", "wiregasm.wasm", "wiregasm.data"]) {
    fs.accessSync(path.join(dist, name)); // without one of them loading would never end
  }
  const lib = await require(path.join(dist, "wiregasm.js"))({
    locateFile: (name) => path.join(dist, name),
    print: log,
    printErr: log,
    handleStatus: (type, text) => type === 1 || log(text), // 1: progress
  });
  say({ version: lib.wiresharkVersion() });
  if (request.plugin !== null) {
    lib.FS.writeFile(`${lib.getPluginsDirectory()}/${path.basename(request.plugin)}`, fs.readFileSync(request.plugin));
  }
  if (!lib.init()) throw new Error("wiregasm does not start");
  for (const [name, value] of Object.entries(request.prefs)) {
    const dot = name.indexOf(".");
    const { code, error } = lib.setPref(name.slice(0, dot), name.slice(dot + 1), value);
    if (code !== 0) throw new Error(`preference ${name}: ${error || `code ${code}`}`);
  }
  lib.applyPreferences();

  const upload = `${lib.getUploadDirectory()}/capture`;
  lib.FS.writeFile(upload, fs.readFileSync(request.capture));
  const session = new lib.DissectSession(upload);
  const { code, error, summary } = session.load();
  if (code !== 0) throw new Error(`${request.capture}: ${error || `code ${code}`}`);
  const order = request.order ?? Array.from({ length: summary.packet_count }, (_, i) => i + 1);
  for (const number of order) {
    if (number < 1 || number > summary.packet_count) throw new Error(`no frame ${number}`);
    say(frame(session, number, request.keep));
  }
  for (const filter of request.filters) say(matching(lib, session, filter));
}

main(process.argv[2], JSON.parse(fs.readFileSync(0, "utf8"))).then(
  () => process.exit(0),
  (error) => {
    say({ error: String(error?.stack ?? error) });
    process.exit(1);
  },
);
