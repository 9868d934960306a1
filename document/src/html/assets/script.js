// The page's own script: turns each drawing into a plot to zoom and to read, and the theme by hand.
// Words from results go into the page as text only, never as markup.
(function () {
  "use strict";
  var root = document.documentElement;
  var data = JSON.parse(document.getElementById("data").textContent);
  var DASH = [[], [7, 3], [2, 2], [9, 3, 2, 3], [4, 2], [12, 4]];
  var plots = [];

  function colour(name) { return getComputedStyle(root).getPropertyValue("--" + name).trim(); }
  function figures(v) { var a = Math.abs(v); return v.toFixed(a >= 100 ? 0 : a >= 10 ? 1 : 2); }
  function ns(v) {
    var a = Math.abs(v);
    if (a >= 1e9) { return figures(v / 1e9) + " s"; }
    if (a >= 1e6) { return figures(v / 1e6) + " ms"; }
    if (a >= 1e3) { return figures(v / 1e3) + " µs"; }
    return Math.round(v) + " ns";
  }
  function round(v) {
    var unit = v >= 1e9 ? [1e9, " s"] : v >= 1e6 ? [1e6, " ms"] : v >= 1e3 ? [1e3, " µs"] : [1, " ns"];
    return +(v / unit[0]).toPrecision(3) + unit[1];
  }
  function count(v) { return Math.round(v).toString().replace(/\B(?=(\d{3})+$)/g, "\u00a0"); }
  function seconds(v) { return +v.toFixed(6) + " s"; }
  // Hours and minutes, and seconds where they are not whole minutes.
  function clock(v) {
    function two(n) { return (n < 10 ? "0" : "") + n; }
    var rounded = Math.round(v * 1e6) / 1e6, whole = Math.floor(rounded), s = whole % 60;
    var rest = (rounded - whole).toFixed(6).replace(/0+$/, "").slice(1);
    var tail = s || rest !== "." ? ":" + two(s) + (rest === "." ? "" : rest) : "";
    return Math.floor(whole / 3600) + ":" + two(Math.floor(whole / 60) % 60) + tail;
  }
  function moment(chart, v) { return chart.x.clock ? clock(v) + " (" + seconds(v) + ")" : seconds(v); }
  function element(name, cls, text) {
    var made = document.createElement(name);
    if (cls) { made.className = cls; }
    if (text !== undefined) { made.textContent = text; }
    return made;
  }
  function button(text, label, act) {
    var made = element("button", "tool", text);
    made.type = "button";
    made.setAttribute("aria-label", label);
    made.title = label;
    made.addEventListener("click", act);
    return made;
  }
  // The first place whose value is at or above v.
  function search(sorted, v) {
    var low = 0, high = sorted.length;
    while (low < high) { var mid = (low + high) >> 1; if (sorted[mid] < v) { low = mid + 1; } else { high = mid; } }
    return low;
  }

  function line(series, extra) {
    var made = {
      label: series.name, width: 2, dash: DASH[series.ink % 6], points: { show: false },
      stroke: colour("s" + series.ink % 6)
    };
    for (var key in extra) { made[key] = extra[key]; }
    return made;
  }
  function faint(ink, share) {
    var c = colour("s" + ink % 6), at = function (i) { return parseInt(c.slice(i, i + 2), 16); };
    return "rgba(" + at(1) + "," + at(3) + "," + at(5) + "," + share + ")";
  }

  // Named spans of x: a line at each end, and the name above.
  function spans(u, named) {
    var c = u.ctx, left = u.bbox.left, right = left + u.bbox.width, top = u.bbox.top, far = 12 * devicePixelRatio;
    c.save();
    c.font = far + "px Roboto, Arial, sans-serif";
    c.textAlign = "center";
    c.fillStyle = colour("muted");
    c.strokeStyle = colour("axis");
    c.lineWidth = devicePixelRatio;
    c.globalAlpha = .8;
    named.forEach(function (span) {
      var from = u.valToPos(span[0], "x", true), to = u.valToPos(span[1], "x", true);
      c.beginPath();
      [from, to].forEach(function (x) {
        if (x >= left && x <= right) { c.moveTo(x, top - far); c.lineTo(x, top + u.bbox.height); }
      });
      c.stroke();
      from = Math.max(from, left);
      to = Math.min(to, right);
      var fits = c.measureText(span[2]).width + 4 <= to - from;
      if (!fits && (to - from < far || c.measureText(span[2]).width > u.bbox.height)) { return; }
      c.save();
      c.translate((from + to) / 2, top - far / 4);
      // Where the name does not fit across, it stands upright.
      if (!fits) { c.rotate(-Math.PI / 2); c.textAlign = "right"; c.translate(-far / 2, far / 3); }
      c.fillText(span[2], 0, 0);
      c.restore();
    });
    c.restore();
  }

  // Named values of one axis: a dashed line through the frame, and the name at its end.
  function thresholds(u, named, along) {
    var c = u.ctx, b = u.bbox, far = 12 * devicePixelRatio;
    c.save();
    c.font = far + "px Roboto, Arial, sans-serif";
    c.fillStyle = colour("muted");
    c.strokeStyle = colour("text");
    c.lineWidth = devicePixelRatio;
    c.textBaseline = "alphabetic";
    c.setLineDash([6 * devicePixelRatio, 4 * devicePixelRatio]);
    named.forEach(function (named, nth) {
      var at = u.valToPos(named[0], along, true), upright = along === "x";
      var low = upright ? b.left : b.top, high = low + (upright ? b.width : b.height);
      if (!(at >= low && at <= high)) { return; }
      c.beginPath();
      c.moveTo(upright ? at : b.left, upright ? b.top : at);
      c.lineTo(upright ? at : b.left + b.width, upright ? b.top + b.height : at);
      c.stroke();
      c.textAlign = upright ? "left" : "right";
      c.fillText(named[1], upright ? at + 4 : b.left + b.width - 4, upright ? b.top + far * (1 + 1.3 * nth) : at - 4);
    });
    c.restore();
  }

  var KINDS = {
    histogram: function (chart) {
      var floor = chart.y.low;
      return {
        data: [data.edges].concat(chart.series.map(function (s) {
          var values = s.counts.map(function (c) { return c > 0 ? c : floor; });
          return values.concat([floor]);
        })),
        series: chart.series.map(function (s) {
          return line(s, { paths: uPlot.paths.stepped({ align: 1 }), fill: faint(s.ink, .13), width: 1.8 });
        }),
        xs: round, ys: function (v) { return v < 1 ? "" : count(v); },
        over: function (u) { if (data.beyond) { spans(u, [data.beyond]); } },
        // The bar that is pointed at: points stand at left edges, so that the nearest may be the next one's.
        index: function (v) {
          var e = data.edges, at = search(e, v);
          at = e[at] === v ? at : at - 1;
          return at < 0 || at >= e.length - 1 ? null : at;
        },
        say: function (u, at) {
          var e = data.edges;
          var open = data.beyond && at === e.length - 2;
          return (open ? data.beyond[2] : ns(e[at]) + " to " + ns(e[at + 1])) + ": " + chart.series.map(function (s) {
            return s.name + " " + count(s.counts[at]) + " cycles";
          }).join(" · ");
        }
      };
    },
    percentiles: function (chart) {
      var xs = [];
      chart.series.forEach(function (s) { xs = xs.concat(s.x); });
      // The end of a curve stands twice: the last step leads to it, then the largest value.
      var ends = chart.series.map(function (s) { return s.x[s.x.length - 1]; });
      xs = Array.from(new Set(xs)).concat(Array.from(new Set(ends)));
      xs.sort(function (a, b) { return a - b; });
      var columns = chart.series.map(function (s) {
        var last = s.x.length - 1;
        return xs.map(function (x, i) {
          var at = search(s.x, x), twice = i > 0 && xs[i - 1] === x;
          return at > last ? null : twice && x === s.x[last] ? s.y[last] : s.y[at];
        });
      });
      return {
        data: [xs].concat(columns),
        series: chart.series.map(function (s) { return line(s, { paths: uPlot.paths.stepped({ align: -1 }) }); }),
        xs: count, ys: round,
        say: function (u, at) {
          return "all but one in " + count(u.data[0][at]) + " cycles are late by at most: " +
            chart.series.map(function (s, i) {
              var v = u.data[i + 1][at];
              return s.name + " " + (v == null ? "(n is too small)" : ns(v));
            }).join(" · ");
        }
      };
    },
    time: function (chart) {
      var s = chart.series[0], t = s.t.slice(), low = chart.y.low;
      var floor = function (v) { return v == null ? null : Math.max(v, low); };
      for (var i = 0; i < t.length; i++) { if (t[i] === null) { t[i] = (t[i - 1] + s.t[i + 1]) / 2; } }
      var ink = colour("s" + s.ink % 6);
      return {
        data: [t, s.max.map(floor), s.min.map(floor), s.mean.map(floor)],
        series: [
          line(s, { label: "largest", width: .7, dash: [] }), line(s, { label: "smallest", width: .7, dash: [] }),
          line(s, { label: "mean", width: 1.6, dash: [] })
        ],
        bands: [{ series: [1, 2], fill: faint(s.ink, .28) }],
        xs: function (v) { return +v.toFixed(6) + ""; }, ys: round,
        over: function (u) {
          spans(u, s.loads);
          var c = u.ctx, from = search(s.ot, u.scales.x.min), to = search(s.ot, u.scales.x.max);
          var r = 1.8 * devicePixelRatio;
          c.save();
          c.beginPath();
          c.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
          c.clip();
          c.fillStyle = ink;
          c.beginPath();
          for (var i = from; i < to; i++) {
            var x = u.valToPos(s.ot[i], "x", true), y = u.valToPos(s.ov[i], "y", true);
            c.moveTo(x + r, y);
            c.arc(x, y, r, 0, 6.2832);
          }
          c.fill();
          c.strokeStyle = colour("text");
          c.lineWidth = devicePixelRatio;
          c.beginPath();
          var foot = u.bbox.top + u.bbox.height;
          s.missed.forEach(function (at) {
            var x = u.valToPos(at, "x", true);
            c.moveTo(x, foot);
            c.lineTo(x, foot - 9 * devicePixelRatio);
          });
          c.stroke();
          c.restore();
        },
        // The outlier that is pointed at.
        near: function (u) {
          var reach = (u.scales.x.max - u.scales.x.min) / 150, near = search(s.ot, u.posToVal(u.cursor.left, "x") - reach);
          var found = -1, y = u.cursor.top;
          for (var i = near; i < s.ot.length && s.ot[i] <= s.ot[near] + 2 * reach; i++) {
            var far = Math.abs(u.valToPos(s.ov[i], "y") - y);
            if (far < 12 && (found < 0 || far < Math.abs(u.valToPos(s.ov[found], "y") - y))) { found = i; }
          }
          return found;
        },
        // What is known of that one, as the page has it further down.
        show: function (u) {
          var found = this.near(u), wanted = found < 0 ? "" : "cycle " + count(s.ok[found]) + " of " + s.name + ",";
          var kept = found < 0 ? [] : Array.prototype.filter.call(document.querySelectorAll("#causes details"), function (d) {
            return d.firstElementChild.textContent.indexOf(wanted) === 0;
          });
          if (kept.length) { kept[0].open = true; kept[0].scrollIntoView(); }
        },
        say: function (u, at) {
          if (s.max[at] == null) { return ""; }
          var words = "at " + moment(chart, t[at]) + ": " + (s.cycles > 1 ? "smallest " + ns(s.min[at]) + ", mean " +
            ns(s.mean[at]) + ", largest " + ns(s.max[at]) + " of up to " + count(s.cycles) + " cycles" : ns(s.max[at]));
          var found = this.near(u);
          var why = found < 0 ? "" : (s.why || {})[s.ok[found]];
          return found < 0 ? words : words + " · cycle " + count(s.ok[found]) + " was late by " + ns(s.ov[found]) +
            (why ? ": " + why : "");
        }
      };
    }
  };

  var LEVELS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";
  KINDS.heat = function (chart) {
    var s = chart.series[0], ink = colour("s" + s.ink % 6), low = chart.y.low;
    // Loads, missed releases and known causes are those of the time series.
    var own = data.charts.filter(function (c) { return c.id === chart.id.replace("heat", "time"); })[0].series[0];
    // A column is its first row and a level for each from there on; a row a quarter of a doubling from 4 ns on.
    function from(row) { return Math.pow(2, 2 + (row >> 2)) * (1 + (row & 3) / 4); }
    function cycles(level) { return level < 1 ? 0 : Math.pow(2, (level - 1) / 3); }
    var columns = s.columns.map(function (text) {
      return { first: parseInt(text.slice(0, 2), 36), levels: Array.from(text.slice(2), function (c) { return LEVELS.indexOf(c); }) };
    });
    var most = 1;
    columns.forEach(function (c) { c.levels.forEach(function (l) { most = Math.max(most, cycles(l)); }); });
    return {
      data: [s.t.map(function (t) { return t + s.width / 2; }), s.t.map(function () { return low; })],
      series: [{ label: s.name, stroke: ink, paths: function () { return null; }, points: { show: false } }],
      xs: function (v) { return +v.toFixed(6) + ""; }, ys: round,
      over: function (u) {
        var c = u.ctx, b = u.bbox;
        c.save();
        c.beginPath();
        c.rect(b.left, b.top, b.width, b.height);
        c.clip();
        c.fillStyle = ink;
        columns.forEach(function (column, at) {
          if (s.t[at] > u.scales.x.max || s.t[at] + s.width < u.scales.x.min) { return; }
          var left = u.valToPos(s.t[at], "x", true), right = u.valToPos(s.t[at] + s.width, "x", true);
          column.levels.forEach(function (level, nth) {
            if (level < 1) { return; }
            var foot = u.valToPos(Math.max(from(column.first + nth), low), "y", true);
            var head = u.valToPos(Math.max(from(column.first + nth + 1), low), "y", true);
            c.globalAlpha = .25 + .75 * Math.log1p(cycles(level)) / Math.log1p(most);
            c.fillRect(left, head, Math.max(right - left, 2 * devicePixelRatio), foot - head);
          });
        });
        c.globalAlpha = 1;
        c.fillStyle = c.strokeStyle = colour("text");
        c.lineWidth = devicePixelRatio;
        c.beginPath();
        own.missed.forEach(function (at) {
          var x = u.valToPos(at, "x", true), foot = b.top + b.height;
          c.moveTo(x, foot);
          c.lineTo(x, foot - 9 * devicePixelRatio);
        });
        c.stroke();
        own.ok.forEach(function (cycle, i) {
          if (!(own.why || {})[cycle]) { return; }
          c.beginPath();
          c.arc(u.valToPos(own.ot[i], "x", true), u.valToPos(own.ov[i], "y", true), 2 * devicePixelRatio, 0, 6.2832);
          c.fill();
        });
        c.restore();
        spans(u, own.loads);
      },
      say: function (u, at) {
        var column = columns[at], late = u.posToVal(u.cursor.top, "y"), row = 4 * (Math.floor(Math.log2(late)) - 2);
        row += Math.floor(4 * (late / Math.pow(2, Math.floor(Math.log2(late))) - 1));
        var about = cycles(column.levels[row - column.first] || 0);
        return "from " + moment(chart, s.t[at]) + " to " + moment(chart, s.t[at] + s.width) + ", " + ns(from(row)) + " to " +
          ns(from(row + 1)) + " late: " + (about > 8 ? "about " : "") + count(about) + (Math.round(about) === 1 ? " cycle" : " cycles");
      }
    };
  };

  // Powers of ten, with twos and fives between where there are few.
  function powers(u, side, min, max) {
    var found = [], few = max / min < 2e3;
    for (var p = Math.floor(Math.log10(min)); p <= Math.log10(max); p++) {
      (few ? [1, 2, 5] : [1]).forEach(function (times) {
        var at = times * Math.pow(10, p);
        if (at >= min * .9999 && at <= max * 1.0001) { found.push(at); }
      });
    }
    if (found.length > 1) { return found; }
    var step = Math.pow(10, Math.floor(Math.log10((max - min) / 3))), even = [];
    for (var v = Math.ceil(min / step) * step; v <= max && even.length < 40; v += step) { even.push(v); }
    return even;
  }
  // Words need room: of marks too close for theirs, those at ones stay before fives and twos.
  function roomy(words) {
    return function (u, splits, axis) {
      var across = axis === 0, scale = across ? "x" : "y", kept = [];
      var room = function (v) { return across ? words(v).length * 6.6 + 8 : 15; };
      var rank = function (v) { return [1, 5, 2].indexOf(Math.round(v / Math.pow(10, Math.floor(Math.log10(v) + 1e-9)))); };
      splits.slice().sort(function (a, b) { return rank(a) - rank(b) || a - b; }).forEach(function (v) {
        var at = u.valToPos(v, scale);
        if (kept.every(function (k) {
          return Math.abs(u.valToPos(k, scale) - at) >= (room(k) + room(v)) / 2;
        })) { kept.push(v); }
      });
      return splits.map(function (v) { return kept.indexOf(v) < 0 ? null : v; });
    };
  }
  // Round steps of a clock, from a microsecond to a thousand days.
  var STEPS = [], DAY = 86400;
  [1e-6, 1e-5, 1e-4, 1e-3, .01, .1].forEach(function (step) { STEPS.push(step, 2 * step, 5 * step); });
  STEPS.push(1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200);
  [1, 10, 100].forEach(function (days) { STEPS.push(days * DAY, 2 * days * DAY, 5 * days * DAY); });
  function axis(of, words, size) {
    var marks = of.log ? { splits: powers, filter: roomy(words) } : of.clock ? { incrs: STEPS, space: 70 } : {};
    if (of.clock) { words = clock; }
    return Object.assign(marks, {
      label: of.label, stroke: colour("muted"), size: size, labelSize: 22, labelGap: 2, font: "12px Roboto, Arial, sans-serif",
      labelFont: "12px Roboto, Arial, sans-serif",
      grid: { stroke: colour("grid"), width: 1 }, ticks: { stroke: colour("axis"), width: 1, size: 5 },
      values: function (u, splits) { return splits.map(function (v) { return v == null ? "" : words(v); }); }
    });
  }
  function scale(of) {
    return { time: false, distr: of.log ? 3 : 1, auto: false, range: function (u, min, max) {
      return [min == null ? of.low : min, max == null ? of.high : max];
    } };
  }

  function Plot(chart) {
    this.chart = chart;
    this.figure = document.getElementById(chart.id);
    this.hidden = {};
    this.box = element("div", "live");
    this.stage = element("div", "stage");
    this.readout = element("div", "readout");
    this.readout.setAttribute("aria-live", "off");
    this.stage.tabIndex = 0;
    this.stage.setAttribute("role", "group");
    this.stage.setAttribute("aria-label", chart.title + ". Interactive: + and − zoom, arrow keys move, 0 shows all; the numbers are in the table below.");
    this.stage.addEventListener("keydown", this.key.bind(this));
    this.box.append(this.tools(), this.stage, this.readout);
    this.figure.insertBefore(this.box, this.figure.querySelector("figcaption"));
    this.figure.classList.add("is-live");
    this.draw();
  }
  Plot.prototype.tools = function () {
    var self = this, tools = element("div", "tools");
    tools.setAttribute("role", "group");
    tools.setAttribute("aria-label", "Zoom");
    tools.append(
      button("+", "Zoom in", function () { self.zoom(.5, 0); }), button("−", "Zoom out", function () { self.zoom(2, 0); }),
      button("◂", "Move left", function () { self.zoom(1, -.25); }), button("▸", "Move right", function () { self.zoom(1, .25); }),
      button("All", "Show all", function () { self.reset(); }));
    if (this.chart.kind !== "time" && this.chart.kind !== "heat" && this.chart.series.length > 1) {
      this.chart.series.forEach(function (s, i) {
        var made = button("", "Show " + s.name, function () { self.toggle(i, made); });
        made.append(self.swatch(s), s.name);
        made.setAttribute("aria-pressed", "true");
        tools.append(made);
      });
    }
    return tools;
  };
  Plot.prototype.swatch = function (s) {
    var ns = "http://www.w3.org/2000/svg", svg = document.createElementNS(ns, "svg"), path = document.createElementNS(ns, "path");
    svg.setAttribute("width", "30");
    svg.setAttribute("height", "8");
    svg.setAttribute("aria-hidden", "true");
    path.setAttribute("d", "M0 4H28");
    path.setAttribute("class", "line ink-s" + s.ink % 6);
    path.setAttribute("stroke-width", "3");
    path.setAttribute("stroke-dasharray", DASH[s.ink % 6].join(" "));
    svg.append(path);
    return svg;
  };
  Plot.prototype.toggle = function (i, made) {
    this.hidden[i] = !this.hidden[i];
    made.setAttribute("aria-pressed", String(!this.hidden[i]));
    this.live.setSeries(i + 1, { show: !this.hidden[i] });
  };
  Plot.prototype.draw = function () {
    var self = this, chart = this.chart, made = KINDS[chart.kind](chart);
    var kept = this.live ? [this.live.scales.x.min, this.live.scales.x.max] : null;
    if (this.live) { this.live.destroy(); }
    var cursor = { drag: { x: true, y: false, setScale: true }, points: { size: 7 } };
    if (made.index) { cursor.dataIdx = function (u, series, nearest, v) { return made.index(v); }; }
    this.live = new uPlot({
      width: Math.max(this.stage.clientWidth, 260), height: this.height(), legend: { show: false },
      cursor: cursor,
      scales: { x: scale(chart.x), y: scale(chart.y) },
      axes: [axis(chart.x, made.xs, 34), axis(chart.y, made.ys, 62)],
      series: [{}].concat(made.series), bands: made.bands,
      hooks: {
        draw: [function (u) {
          if (made.over) { made.over(u); }
          thresholds(u, chart.deadlines || [], chart.kind === "histogram" ? "x" : "y");
          self.drawn = (self.drawn || 0) + 1;
          if (!root.dataset.firstDraw) { root.dataset.firstDraw = String(performance.now()); }
        }],
        setCursor: [function (u) {
          var at = made.index && u.cursor.idx != null ? made.index(u.posToVal(u.cursor.left, "x")) : u.cursor.idx;
          self.readout.textContent = at == null || u.cursor.left < 0 ? "" : made.say(u, at);
        }]
      }
    }, made.data, this.stage);
    if (made.show) {
      this.live.over.addEventListener("click", function () { made.show(self.live); });
    }
    Object.keys(this.hidden).forEach(function (i) { if (self.hidden[i]) { self.live.setSeries(+i + 1, { show: false }); } });
    if (kept) { this.live.setScale("x", { min: kept[0], max: kept[1] }); } else { this.reset(); }
  };
  Plot.prototype.height = function () { return this.stage.clientWidth < 480 ? 280 : 340; };
  Plot.prototype.reset = function () { this.live.setScale("x", { min: this.chart.x.low, max: this.chart.x.high }); };
  // Keeps `share` of what is shown, moved by `by` of it; never beyond the data.
  Plot.prototype.zoom = function (share, by) {
    var x = this.chart.x, to = x.log ? Math.log : Number, back = x.log ? Math.exp : Number;
    var low = to(x.low), high = to(x.high), min = to(this.live.scales.x.min), max = to(this.live.scales.x.max);
    var half = Math.max((max - min) * share / 2, (high - low) * 1e-6), mid = (min + max) / 2 + (max - min) * by;
    half = Math.min(half, (high - low) / 2);
    mid = Math.min(Math.max(mid, low + half), high - half);
    this.live.setScale("x", { min: back(mid - half), max: back(mid + half) });
  };
  Plot.prototype.key = function (event) {
    var act = { "+": [.5, 0], "=": [.5, 0], "-": [2, 0], "ArrowLeft": [1, -.25], "ArrowRight": [1, .25] }[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey) { return; }
    if (act) { this.zoom(act[0], act[1]); } else if (event.key === "0") { this.reset(); } else { return; }
    event.preventDefault();
  };

  function dark() {
    return root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  }
  var theme = document.getElementById("theme");
  function label() {
    theme.textContent = dark() ? "Light" : "Dark";
    theme.setAttribute("aria-label", "Switch to the " + (dark() ? "light" : "dark") + " theme");
  }
  theme.hidden = false;
  label();
  theme.addEventListener("click", function () {
    root.dataset.theme = dark() ? "light" : "dark";
    label();
    plots.forEach(function (plot) { plot.draw(); });
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", function () {
    label();
    plots.forEach(function (plot) { plot.draw(); });
  });
  data.charts.forEach(function (chart) { plots.push(new Plot(chart)); });

  // A cell of numbers as one: "≥ 1.2 ms" as nanoseconds, "12 345", "169 k", "3.5 %"; of an interval its lower end,
  // whose unit may stand behind the upper one: "1.20–8.05 ms". What has none is last.
  var NUMBER = "(-?\\d(?:[\\d\\s]*\\d)?(?:\\.\\d+)?(?:e[-+]?\\d+)?)", UNIT = "\\s*(ns|µs|ms|s|min|h|days?|d|[kMG])?(?:Hz)?(?![A-Za-z])";
  var SIZE = new RegExp(NUMBER + UNIT + "(?:–" + NUMBER + UNIT + ")?");
  var UNITS = {
    "µs": 1e3, ms: 1e6, s: 1e9, min: 6e10, h: 3.6e12, d: 8.64e13, day: 8.64e13, days: 8.64e13, k: 1e3, M: 1e6, G: 1e9
  };
  function size(text) {
    var found = SIZE.exec(text);
    return found ? parseFloat(found[1].replace(/\s/g, "")) * (UNITS[found[2] || found[4]] || 1) : NaN;
  }
  // Sorts by a column: of numbers the largest first, of words by the alphabet; then the other way
  // round; then as the page has it.
  function sortable(table) {
    var body = table.tBodies[0], rows = Array.from(body.rows), heads = Array.from(table.tHead.rows[0].cells);
    heads.forEach(function (head, column) {
      var made = element("button", "sort", head.textContent), numeric = head.classList.contains("num");
      var orders = numeric ? ["descending", "ascending"] : ["ascending", "descending"];
      made.type = "button";
      made.title = "Sort by " + head.textContent;
      made.addEventListener("click", function () {
        var order = orders[orders.indexOf(head.getAttribute("aria-sort")) + 1], sign = order === "descending" ? -1 : 1;
        heads.forEach(function (other) { other.removeAttribute("aria-sort"); });
        var sorted = rows.slice();
        if (order) {
          head.setAttribute("aria-sort", order);
          sorted.sort(function (a, b) {
            var p = a.cells[column].textContent, q = b.cells[column].textContent;
            if (!numeric) { return sign * p.localeCompare(q, "en", { numeric: true }); }
            p = size(p);
            q = size(q);
            return isNaN(p) || isNaN(q) ? isNaN(p) - isNaN(q) : sign * (p - q);
          });
        }
        body.append.apply(body, sorted);
      });
      head.textContent = "";
      head.append(made);
    });
  }
  document.querySelectorAll("section table").forEach(function (table) {
    if (table.tBodies[0].rows.length > 2 && !table.closest(".plot")) { sortable(table); }
  });
  var width = innerWidth, waiting;
  addEventListener("resize", function () {
    clearTimeout(waiting);
    waiting = setTimeout(function () {
      if (innerWidth === width) { return; }
      width = innerWidth;
      plots.forEach(function (plot) { plot.live.setSize({ width: Math.max(plot.stage.clientWidth, 260), height: plot.height() }); });
    }, 100);
  });
  // Paper has nothing to click: claims and facts are printed open, numbers behind plots are not.
  var opened = [];
  addEventListener("beforeprint", function () {
    opened = Array.from(document.querySelectorAll("details:not([open])")).filter(function (d) { return !d.closest(".plot"); });
    opened.forEach(function (d) { d.open = true; });
  });
  addEventListener("afterprint", function () { opened.forEach(function (d) { d.open = false; }); });
  // For whoever measures the page.
  window.punctual = { plots: plots };
})();
