"use strict";
// Zoom, pan, labels and tips for the timelines; colours of lines. The page is complete without it.
(() => {
  const UNITS = [["s", 1], ["ms", 1e-3], ["µs", 1e-6], ["ns", 1e-9]];
  const LABELS = 120;

  const duration = (seconds, step) => {
    if (Math.abs(seconds) < step / 1e3) return "0";
    const [unit, size] = UNITS.find(([, size]) => seconds >= size) || UNITS[3];
    const digits = Math.max(0, Math.ceil(-Math.log10(step / size) - 1e-9));
    return `${(seconds / size).toFixed(Math.min(digits, 6))} ${unit}`;
  };

  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  document.body.append(tip);
  const showTip = (text, event) => {
    tip.textContent = text;
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const right = event.clientX + 14 + box.width > innerWidth;
    const below = event.clientY + 18 + box.height > innerHeight;
    tip.style.left = `${Math.max(4, right ? event.clientX - 14 - box.width : event.clientX + 14)}px`;
    tip.style.top = `${Math.max(4, below ? event.clientY - 14 - box.height : event.clientY + 18)}px`;
  };

  for (const figure of document.querySelectorAll(".timeline")) {
    const span = Number(figure.dataset.span);
    const segments = JSON.parse(figure.dataset.segments); // [first second, last second, where it is drawn]
    const view = figure.querySelector(".view");
    const svg = figure.querySelector("svg");
    const group = figure.querySelector(".bars");
    const axis = figure.querySelector(".axis");
    const labels = figure.querySelector(".labels");
    const width = svg.viewBox.baseVal.width;
    const bars = [...group.children].map((rect) => {
      const title = rect.querySelector("title");
      const bar = {
        text: title.textContent,
        x: Number(rect.getAttribute("x")) / width,
        end: (Number(rect.getAttribute("x")) + Number(rect.getAttribute("width"))) / width,
        y: Number(rect.getAttribute("y")),
        isBand: rect.classList.contains("band"),
      };
      title.remove(); // the tip takes its place
      rect.bar = bar;
      return bar;
    });
    const most = Math.max(4, 40 / Math.min(...bars.map((bar) => bar.end - bar.x)));
    let zoom = 1;
    let left = 0; // of the span, from 0 to 1

    // Round moments, and the beginnings of segments: [where, when, to what precision].
    const ticks = (step, apart) => {
      const from = left * span;
      const to = (left + 0.95 / zoom) * span;
      const found = [];
      let free = from;
      const add = (at, moment, precision) => {
        if (at < free || at > to) return;
        found.push([at, moment, precision]);
        free = at + apart;
      };
      for (const [first, last, begin] of segments) {
        if (begin > to) break;
        add(begin, first, step / 10);
        const start = Math.max(first, first + from - begin);
        for (let n = Math.ceil(start / step - 1e-9); n * step <= Math.min(last, first + to - begin); n++) {
          add(begin + n * step - first, n * step, step);
        }
      }
      return found;
    };

    const draw = () => {
      zoom = Math.min(Math.max(zoom, 1), most);
      left = Math.min(Math.max(left, 0), 1 - 1 / zoom);
      group.setAttribute("transform", `translate(${-left * zoom * width} 0) scale(${zoom} 1)`);
      const pixels = view.clientWidth;
      const raw = span / zoom / Math.max(2, Math.floor(pixels / 110));
      const power = 10 ** Math.floor(Math.log10(raw));
      const step = power * [1, 2, 5, 10].find((factor) => power * factor >= raw);
      axis.replaceChildren();
      for (const [at, moment, precision] of ticks(step, (75 / pixels) * (span / zoom))) {
        const tick = document.createElement("span");
        tick.style.left = `${(at / span - left) * zoom * 100}%`;
        tick.textContent = duration(moment, precision);
        axis.append(tick);
      }
      const shown = bars.filter((bar) => !bar.isBand && bar.end > left && bar.x < left + 1 / zoom);
      const wide = shown.filter((bar) => (bar.end - bar.x) * zoom * pixels > 46).slice(0, LABELS);
      const narrow = shown.filter((bar) => (bar.end - bar.x) * zoom * pixels < 4);
      figure.classList.toggle("roomy", narrow.length <= shown.length / 4);
      labels.replaceChildren(...wide.map((bar) => {
        const label = document.createElement("span");
        const from = Math.max(0, (bar.x - left) * zoom);
        label.style.left = `${from * 100}%`;
        label.style.width = `${(Math.min(1, (bar.end - left) * zoom) - from) * 100}%`;
        label.style.top = `${bar.y}px`;
        label.textContent = bar.text.split("\n", 1)[0];
        return label;
      }));
    };
    const zoomAt = (factor, at = 0.5) => {
      const fixed = left + at / zoom;
      zoom = Math.min(Math.max(zoom * factor, 1), most);
      left = fixed - at / zoom;
      draw();
    };
    const pan = (share) => { left += share / zoom; draw(); };
    const reset = () => { zoom = 1; left = 0; draw(); };
    const where = (event) => {
      const box = view.getBoundingClientRect();
      return (event.clientX - box.left) / box.width;
    };

    view.addEventListener("wheel", (event) => {
      if (event.ctrlKey || event.metaKey) {
        zoomAt(Math.exp(-event.deltaY / 200), where(event));
      } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        pan((event.deltaX || event.deltaY) / view.clientWidth);
      } else return;
      event.preventDefault();
    }, { passive: false });
    view.addEventListener("dblclick", (event) => zoomAt(3, where(event)));
    view.addEventListener("keydown", (event) => {
      const keys = {
        "+": () => zoomAt(2), "=": () => zoomAt(2), "-": () => zoomAt(0.5), "0": reset,
        ArrowLeft: () => pan(-0.2), ArrowRight: () => pan(0.2),
      };
      if (!keys[event.key] || event.ctrlKey || event.metaKey) return;
      keys[event.key]();
      event.preventDefault();
    });
    let grip = null;
    view.addEventListener("pointerdown", (event) => {
      grip = { x: event.clientX, left };
      view.setPointerCapture(event.pointerId);
      tip.hidden = true;
    });
    view.addEventListener("pointerup", () => { grip = null; });
    view.addEventListener("pointercancel", () => { grip = null; });
    view.addEventListener("pointermove", (event) => {
      if (grip) {
        left = grip.left - (event.clientX - grip.x) / view.clientWidth / zoom;
        draw();
      } else if (event.target.bar) {
        showTip(event.target.bar.text, event);
      } else tip.hidden = true;
    });
    view.addEventListener("pointerleave", () => { tip.hidden = true; });

    const tools = document.createElement("span");
    tools.className = "tools";
    for (const [text, title, action] of [
      ["+", "zoom in", () => zoomAt(2)], ["−", "zoom out", () => zoomAt(0.5)], ["all", "show all", reset],
    ]) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = text;
      button.title = title;
      button.setAttribute("aria-label", title);
      button.addEventListener("click", action);
      tools.append(button);
    }
    figure.querySelector("figcaption").append(tools);
    figure.querySelector(".hint").textContent = "Ctrl and wheel, + and − zoom; dragging and arrow keys pan.";
    new ResizeObserver(draw).observe(view);
    draw();
  }

  for (const launch of document.querySelectorAll(".launch")) {
    const svg = launch.querySelector(".timeline svg");
    if (!svg) continue;
    for (const row of launch.querySelectorAll(".source [data-colour]")) {
      row.addEventListener("mouseenter", () => svg.setAttribute("data-hot", row.dataset.colour));
      row.addEventListener("mouseleave", () => svg.removeAttribute("data-hot"));
    }
  }
})();
