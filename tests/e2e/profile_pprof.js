// SPDX-License-Identifier: Apache-2.0
// A pprof file by the npm package pprof-format: what it reads as JSON, and whether it encodes the same profile again.
// profile_pprof.js NPM FILE
"use strict";
const { readFileSync } = require("fs");
const { gunzipSync } = require("zlib");
const { Profile } = require(process.argv[2] + "/node_modules/pprof-format");

const shown = (p) => {
	const text = p.stringTable.strings;
	const functions = new Map(p.function.map((f) => [f.id, text[f.name]]));
	const names = new Map(p.location.map((l) => [l.id, l.line.map((x) => functions.get(x.functionId))]));
	return {
		types: p.sampleType.map((t) => [text[t.type], text[t.unit]]),
		samples: p.sample.map((s) => [s.locationId.flatMap((id) => names.get(id)), s.value.map(Number)]),
		files: p.mapping.map((m) => [text[m.filename], text[m.buildId]]),
	};
};
const first = Profile.decode(gunzipSync(readFileSync(process.argv[3])));
const again = Profile.decode(first.encode());
if (JSON.stringify(shown(again)) !== JSON.stringify(shown(first))) throw new Error("not the same when encoded again");
console.log(JSON.stringify(shown(first)));
