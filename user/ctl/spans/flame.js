"use strict";
/* Zoom and search of the flame graph. Names are hostile: they only ever become text. Without script the picture is whole. */
(() => {
	const svg = document.documentElement, make = name => document.createElementNS(svg.namespaceURI, name);
	const [, , width] = svg.getAttribute("viewBox").split(" ").map(Number), MARGIN = 10, PAD = 8, TEXT_MIN = 24;
	const frames = [...svg.querySelectorAll("g[data-n]")].map(g => {
		const rect = g.querySelector("rect");
		return { g, rect, text: g.querySelector("text"), x: +g.getAttribute("data-x"), y: +rect.getAttribute("y"), w: +g.getAttribute("data-w"),
			name: g.getAttribute("data-n"), total: g.getAttribute("data-v"), opacity: rect.getAttribute("fill-opacity") };
	});
	const whole = frames[0];
	if (!whole) return;
	svg.setAttribute("role", "group");

	/* The name with its total, or the name alone, or nothing, as without script. */
	function label(f, x, w) {
		if (w < TEXT_MIN) {
			if (f.text) f.text.textContent = "";
			return;
		}
		if (!f.text) {
			f.text = make("text");
			f.text.setAttribute("class", "ink");
			f.text.setAttribute("y", f.y + 14);
			f.g.append(f.text);
		}
		f.text.setAttribute("x", x + PAD / 2);
		for (const text of [f.name + "  " + f.total, f.name, ""]) {
			f.text.textContent = text;
			if (!text || f.text.getComputedTextLength() <= w - PAD) return;
		}
	}

	/* Those that it stands on are as wide as the picture; what is beside it is gone. */
	function zoom(to) {
		const all = width - 2 * MARGIN, scale = all / to.w, slack = 0.001;
		for (const f of frames) {
			const below = f.y > to.y && f.x <= to.x + slack && f.x + f.w >= to.x + to.w - slack;
			const above = f.y <= to.y && f.x >= to.x - slack && f.x + f.w <= to.x + to.w + slack;
			f.g.style.display = below || above ? "" : "none";
			if (!below && !above) continue;
			const x = below ? MARGIN : MARGIN + (f.x - to.x) * scale, w = below ? all : f.w * scale;
			f.rect.setAttribute("x", x);
			f.rect.setAttribute("width", w > 1.2 ? w - 0.6 : w);
			f.g.style.opacity = below ? "0.6" : "";
			label(f, x, w);
		}
		reset.style.display = to === whole ? "none" : "";
	}

	/* Each joule counts once: of frames that were found above each other the lowest. */
	function search(part) {
		const found = frames.filter(f => part && f.name.toLowerCase().includes(part.toLowerCase()));
		const lowest = [];
		for (const f of [...found].sort((a, b) => b.y - a.y))
			if (!lowest.some(l => f.x >= l.x - 0.001 && f.x + f.w <= l.x + l.w + 0.001)) lowest.push(f);
		for (const f of frames) f.rect.setAttribute("fill-opacity", f.opacity);
		for (const f of found) f.rect.setAttribute("fill-opacity", "1");
		const share = 100 * lowest.reduce((sum, f) => sum + f.w, 0) / whole.w;
		find.textContent = !part ? "Search" : "\u201c" + (part.length > 30 ? part.slice(0, 30) + "\u2026" : part) + "\u201d: " + share.toFixed(1) + " %";
	}

	function ask() {
		const part = prompt("Show frames whose name has:");
		if (part !== null) search(part.trim());
	}

	function control(text, x, act) {
		const t = make("text");
		t.setAttribute("class", "dim");
		t.setAttribute("x", x);
		t.setAttribute("y", 26);
		t.setAttribute("text-anchor", "end");
		t.setAttribute("role", "button");
		t.setAttribute("tabindex", "0");
		t.style.cursor = "pointer";
		t.textContent = text;
		t.addEventListener("click", act);
		t.addEventListener("keydown", e => { if (e.key === "Enter" || e.key === " ") act(); });
		svg.append(t);
		return t;
	}

	const find = control("Search", width - MARGIN, ask), reset = control("Reset zoom", width - MARGIN - 260, () => zoom(whole));
	reset.style.display = "none";
	for (const f of frames) {
		f.g.style.cursor = "pointer";
		f.g.addEventListener("click", () => zoom(f));
	}
	svg.addEventListener("keydown", e => {
		if (e.key === "Escape") zoom(whole);
		if (e.key === "/" || (e.key === "f" && e.ctrlKey)) {
			e.preventDefault();
			ask();
		}
	});
})();
