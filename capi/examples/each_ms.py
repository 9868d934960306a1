"""A loop of 1 kHz in Python for so many seconds, and how it went: each_ms.py [SECONDS] [CPU]

    cargo xtask install --library --prefix /usr/local && ldconfig
    python3 each_ms.py

By ctypes, which needs nothing but the shared library. A call lets other Python threads run while it
waits. What the interpreter itself takes now and then, milliseconds of a garbage collection too, is
counted as late or missed like anything else. As root for numbers that a real-time loop would get.
"""

import ctypes
import errno
import sys
from ctypes import c_char_p, c_double, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p

PUNCTUAL = ctypes.CDLL("libpunctual.so.0")
PUNCTUAL.punctual_last_error.restype = c_char_p


class Record(ctypes.Structure):
    """A struct of punctual.h, with its defaults: `size` says which of its fields are known here."""

    def __init__(self):
        super().__init__()
        init = getattr(PUNCTUAL, f"{self.C_NAME}_init")
        check(init(ctypes.byref(self), c_size_t(ctypes.sizeof(self))))


def fields(*rows):
    """The fields of a struct: those of one type behind it, in the order of the header."""
    return [(name, kind) for kind, names in rows for name in names.split()]


class Options(Record):
    C_NAME = "punctual_options"
    _fields_ = fields(
        (c_size_t, "size"),
        (c_uint64, "period_num_ns period_den phase_ns margin_ns watchdog_ns grace_ns"),
        (c_double, "budget_share late_share"),
        (c_void_p, "cpus"),
        (c_size_t, "cpu_count"),
        (c_char_p, "samples"),
        (c_void_p, "follow"),
        (c_int32, "phase wait cpu priority"),
        (c_uint32, "lock_memory hold_idle_states learn_first strict"),
        (c_void_p, "learned"),
        (c_size_t, "learned_size"),
    )


class Cycle(Record):
    C_NAME = "punctual_cycle"
    _fields_ = fields(
        (c_size_t, "size"),
        (c_uint64, "n release_ns"),
        (c_int64, "lateness_ns"),
        (c_uint64, "missed dt_ns next_ns part"),
    )


class Stats(Record):
    C_NAME = "punctual_stats"
    _fields_ = fields(
        (c_size_t, "size"),
        (c_uint64, "ran missed started_late over_budget over_release over_deadline"),
        (c_uint64, "last_release_ns last_cycle"),
        (c_int64, "min_ns max_ns"),
        (c_double, "mean_ns"),
        (c_uint64, "stalls longest_stall_ns stalled_ns demoted"),
        (c_uint32, "consistent forced"),
        (c_uint64, "censored"),
    )


def check(answer):
    """Raises what failed."""
    if answer != 0:
        raise OSError(-answer, PUNCTUAL.punctual_last_error().decode())


def main():
    cycles = int(float(sys.argv[1]) * 1000) if len(sys.argv) > 1 else 10_000
    options, cycle, stats, loop = Options(), Cycle(), Stats(), c_void_p()
    options.period_num_ns = 1_000_000
    if len(sys.argv) > 2:
        options.cpu = int(sys.argv[2])
    check(PUNCTUAL.punctual_loop_create(ctypes.byref(loop), ctypes.byref(options)))
    integral_s, at = 0.0, ctypes.byref(cycle)
    for _ in range(cycles):
        answer = PUNCTUAL.punctual_loop_wait(loop, at)
        if answer == -errno.ECANCELED:
            break
        check(answer)
        integral_s += cycle.dt_ns / 1e9  # the work: read, compute, write
    check(PUNCTUAL.punctual_loop_stats(loop, ctypes.byref(stats)))
    check(PUNCTUAL.punctual_loop_destroy(loop))
    print(f"{integral_s:.3f} s of loop: {stats.ran} cycles, {stats.missed} missed")
    print(f"late by at most {stats.max_ns} ns, {stats.mean_ns:.0f} ns in the mean")


if __name__ == "__main__":
    main()
