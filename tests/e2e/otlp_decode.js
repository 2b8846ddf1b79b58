// SPDX-License-Identifier: Apache-2.0
// otlp_decode.js FOLDER FILE: the points of a document, as otlp_decode.py shows them, by OpenTelemetry's package in FOLDER.
'use strict';
const fs = require('fs');
const [folder, file] = process.argv.slice(2);
const root = require(`${folder}/node_modules/@opentelemetry/otlp-transformer/build/src/generated/root.js`);
const request = root.opentelemetry.proto.collector.metrics.v1.ExportMetricsServiceRequest;
const body = fs.readFileSync(file);
const document = request.decode(body);

function double(v) {
	const b = Buffer.alloc(8);

	b.writeDoubleBE(v);
	return b.toString('hex');
}

if (request.encode(document).finish().length !== body.length) { // the order of fields is the encoder's
	console.error('what it encodes again is not as long as what was sent');
	process.exit(1);
}
for (const resource of document.resourceMetrics)
	for (const scope of resource.scopeMetrics)
		for (const metric of scope.metrics)
			for (const p of (metric.sum || metric.gauge).dataPoints) {
				const labels = p.attributes.map((a) => `${a.key}=${a.value.stringValue}`).join(',');
				const value = Object.hasOwn(p, 'asDouble') ? double(p.asDouble) : p.asInt.toString();

				console.log([metric.name, metric.unit, labels, value, p.startTimeUnixNano, p.timeUnixNano].join(' '));
			}
