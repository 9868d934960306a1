"""Reads an export with the packages that it is for, and prints what it found as JSON.

Usage: read_back.py FORMAT FILE. Reads that one file; writes nothing.
"""

import json
import sys

SHARES = [0.0, 0.01, 0.5, 0.9, 0.99, 1.0]


def by_run(frame):
    """What a frame of samples says of each run."""
    found = {}
    for run, all_rows in frame.groupby("run", sort=False):
        rows = all_rows[all_rows["kind"] == "ran"]
        late = rows["lateness_ns"]
        missed = all_rows[all_rows["kind"] == "missed"]
        found[run] = {
            "missed": sorted(int(ns) for ns in missed["lateness_ns"]),
            "censored": int((all_rows["kind"] == "censored").sum()),
            "n": int(len(rows)),
            "conditions": sorted(set(rows["condition"])),
            "cpu": int(rows["cpu"].iloc[0]),
            "min": int(late.min()),
            "max": int(late.max()),
            "quantiles": [int(late.quantile(p, interpolation="lower")) for p in SHARES],
            "wakes": int((rows["release_ns"] + late).sum()),
            "intervals": int(rows["interval_ns"].notna().sum()),
            "interval_sum": int(rows["interval_ns"].sum()),
            "gaps": int(rows["gap_before"].sum()),
            "cold": int(rows["cold"].sum()),
        }
    return found


def csv(path):
    import pandas

    frame = pandas.read_csv(path)
    return {"columns": list(frame.columns), "runs": by_run(frame)}


def parquet(path):
    import duckdb

    def rows(query):
        return duckdb.execute(query, [path]).fetchall()

    frame = duckdb.execute("SELECT * FROM read_parquet(?)", [path]).df()
    facts = rows("SELECT decode(key), decode(value) FROM parquet_kv_metadata(?)")
    counted = rows(
        "SELECT run, count(*), min(lateness_ns), max(lateness_ns), sum(release_ns + lateness_ns)::"
        "VARCHAR FROM read_parquet(?) WHERE kind = 'ran' GROUP BY run ORDER BY run"
    )
    types = rows("DESCRIBE SELECT * FROM read_parquet(?)")
    encodings = rows("SELECT DISTINCT encodings FROM parquet_metadata(?)")
    return {
        "columns": list(frame.columns),
        "types": [row[1] for row in types],
        "encodings": sorted(row[0] for row in encodings),
        "facts": dict(facts),
        "duckdb": counted,
        "runs": by_run(frame),
    }


def histogram(path):
    import duckdb

    rows = duckdb.execute("SELECT * FROM read_parquet(?)", [path]).fetchall()
    return {"rows": rows}


def histogram_csv(path):
    import pandas

    frame = pandas.read_csv(path)
    return {run: int(rows["count"].sum()) for run, rows in frame.groupby("run")}


def hdr(path):
    from hdrh.histogram import HdrHistogram
    from hdrh.log import HistogramLogReader

    reader = HistogramLogReader(path, HdrHistogram(1, 2, 3))
    found = {}
    while (read := reader.get_next_interval_histogram()) is not None:
        counts = [
            [item.value_iterated_to, item.count_at_value_iterated_to]
            for item in read.get_recorded_iterator()
        ]
        found[read.get_tag()] = {
            "n": read.get_total_count(),
            "max": read.get_max_value(),
            "counts": counts,
            "seconds": (read.get_end_time_stamp() - read.get_start_time_stamp()) / 1e3,
        }
    return {"started": reader.get_start_time_sec(), "runs": found}


def openmetrics(path):
    from prometheus_client.openmetrics.parser import text_string_to_metric_families

    with open(path, encoding="utf-8") as text:
        families = list(text_string_to_metric_families(text.read()))
    return {
        family.name: {
            "type": family.type,
            "unit": family.unit,
            "help": family.documentation,
            "samples": [[s.name, s.labels, s.value] for s in family.samples],
        }
        for family in families
    }


def perfetto(path):
    """A trace by Perfetto's own definitions; what they do not have is counted by its place, and
    what its trace_processor would count as an error or lost is counted by its kind."""
    from collections import Counter

    from google.protobuf.unknown_fields import UnknownFieldSet
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2

    trace = perfetto_trace_pb2.Trace()
    with open(path, "rb") as file:
        trace.ParseFromString(file.read())
    unknown = Counter()

    def walk(message, place):
        unknown.update(f"{place}: {field.field_number}" for field in UnknownFieldSet(message))
        for field, value in message.ListFields():
            if field.type == field.TYPE_MESSAGE:
                parts = [value] if hasattr(value, "ListFields") else value
                for part in parts:
                    walk(part, f"{place}.{field.name}")

    walk(trace, "")
    events, faults, slices = Counter(), Counter(), []
    threads, tracks, open_slices = {}, {}, {}
    running, pairs, calls, processes = {}, {}, {}, {}
    unordered = 0
    begins = {"softirq_entry": "vec", "irq_handler_entry": "irq", "local_timer_entry": "vector"}
    ends = {name.replace("entry", "exit"): name for name in begins}

    def follow(cpu, event):
        kind = event.WhichOneof("event")
        body = getattr(event, kind)
        if kind == "sched_switch":
            faults["switches"] += running.get(cpu, body.prev_pid) != body.prev_pid
            running[cpu] = body.next_pid
        elif kind in begins:
            pairs.setdefault((cpu, kind), []).append(getattr(body, begins[kind]))
            faults["nested"] += len(pairs[cpu, kind]) > 8
        elif kind in ends:
            begun = pairs.get((cpu, ends[kind]))
            faults["ends"] += not begun or begun.pop() != getattr(body, begins[ends[kind]])
        elif kind == "sys_enter":
            faults["calls"] += calls.setdefault(event.pid, body.id) != body.id
        elif kind == "sys_exit":
            faults["calls"] += calls.pop(event.pid, None) != body.id
        elif kind in ("hrtimer_expire_entry", "workqueue_execute_start"):
            faults["never ends"] += 1

    for packet in trace.packet:
        bundle = packet.ftrace_events.event
        times = [event.timestamp for event in bundle]
        unordered += sum(later < earlier for earlier, later in zip(times, times[1:]))
        for event in bundle:
            name = event.WhichOneof("event")
            events[event.generic.event_name if name == "generic" else name] += 1
            follow(packet.ftrace_events.cpu, event)
        for thread in packet.process_tree.threads:
            processes[thread.tid] = thread.tgid
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            if track.HasField("thread"):
                threads[track.uuid] = track.thread.tid
                faults["named"] += track.HasField("name")
            tracks[track.uuid] = [threads.get(track.parent_uuid), track.name]
        if packet.HasField("track_event"):
            event = packet.track_event
            stack = open_slices.setdefault(event.track_uuid, [])
            if event.type == event.TYPE_SLICE_BEGIN:
                stack.append((event.name, packet.timestamp))
            else:
                name, start = stack.pop()
                slices.append([*tracks[event.track_uuid], name, packet.timestamp - start])
    return {
        "unknown": unknown,
        "unordered": unordered,
        "faults": {kind: count for kind, count in faults.items() if count},
        "unended": sum(len(begun) for begun in pairs.values()) + len(calls),
        "kernel": any(packet.system_info.utsname.release for packet in trace.packet),
        "processes": processes,
        "events": events,
        "slices": slices,
        "open": sum(len(stack) for stack in open_slices.values()),
        "snapshots": sum(packet.HasField("clock_snapshot") for packet in trace.packet),
    }


if __name__ == "__main__":
    read = {
        "csv": csv,
        "parquet": parquet,
        "histogram": histogram,
        "histogram_csv": histogram_csv,
        "hdr": hdr,
        "openmetrics": openmetrics,
        "perfetto": perfetto,
    }
    print(json.dumps(read[sys.argv[1]](sys.argv[2])))
