/*
 * punctual.h: run periodic loops on Linux, and know how late each cycle was.
 *
 * A loop of one period in the caller's thread: punctual_loop_wait(), work, and again; an executive
 * of many tasks, in one thread, on several CPUs or with threads of their own, with units at fixed
 * places of a frame where they are wanted; a followed clock for either; a process that is a
 * supervisor's task, and a look at such a task; the clock, and a wait for one instant. Linux, x86-64
 * and AArch64. C11 and C++17 and newer; a small C++ wrapper is in punctual.hpp.
 *
 * Answers. A function that can fail returns 0 or a negative errno, never anything else.
 *   punctual_strerror() says what a number means here, punctual_last_error() says it of the last
 *   failure with names and numbers. Common to all:
 *     -EINVAL           a null pointer or an argument that cannot be; punctual_last_error() names
 *                       a pointer that is null
 *     -E2BIG            a struct of a newer version that asks for what this library does not know
 *     -ECHILD           the object is of the process that fork(2) made this one of (see Fork)
 *     -ENOTRECOVERABLE  a fault of the library's own, caught at its border: destroy the object
 *   Nothing here ends the process (but what Fork says), throws, prints (but a fault of its own, on
 *   standard error) or installs a signal handler.
 *
 * Time. All instants are nanoseconds on CLOCK_MONOTONIC, or on the clock that is followed; all spans
 *   are nanoseconds, shares from 0 to 1. A period is an exact fraction of nanoseconds, num/den:
 *   1 kHz is 1000000/1, 3 Hz is 1000000000/3. It is from 1 ns to 2^62 ns (146 years).
 *
 * Real time. Each function says where it may be called:
 *     setup only       allocates, takes time, makes system calls: before or after a loop
 *     in loop          allocates nothing, makes no system call, is done in well under a microsecond
 *     in loop, waits   the same, and its own sleep
 *     reader side      from any thread at any time, disturbs no loop; may allocate
 *
 * Handles. What frees an object (a _destroy(), punctual_unregister(), punctual_watch_close()) says
 *   for each answer whether the handle is gone or stays. Gone: its object has ended and is freed, and
 *   no call may have the handle any more. Stays: nothing was changed, and the handle is to be freed
 *   later, where that is allowed. Common to all:
 *     0                 gone; also of null, of which nothing happens
 *     -ECHILD           stays: in a child of fork(2) it is its parent's, and nobody's there
 *     -ENOTRECOVERABLE  gone
 *
 * Threads. Where nothing else is said, an object is used by one thread at a time.
 *
 * Fork. A child of fork(2) has its parent's memory, not its threads and priorities. In it loops,
 *   executives, followed clocks and processes of its parent answer -ECHILD, _destroy() and
 *   punctual_unregister() too: nothing is put back or freed there, and the parent's sample file is
 *   not touched. What the child creates itself works. A child that is made in any callback (a
 *   body, a trigger, background work) must end, or become another program, before the callback
 *   returns; one that returns is ended there, by _exit(70). A child that lives on without an exec
 *   keeps its parent's request to hold off idle states open (/dev/cpu_dma_latency).
 *
 * Structs that cross the border begin with their size and are filled in by their _init function,
 *   which is given sizeof: so each side may be of another version than the other. One whose size
 *   was never set, as a zeroed one, is -EINVAL.
 */
#ifndef PUNCTUAL_H
#define PUNCTUAL_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#define PUNCTUAL_NOEXCEPT noexcept
#else
#define PUNCTUAL_NOEXCEPT
#endif

/* The version of this header; punctual_version() is that of the library. */
#define PUNCTUAL_VERSION "0.1.0"

/* ---- Errors ---------------------------------------------------------------------------------- */

/*
 * What an errno means in this library; takes both -errno and errno. Never null, never to be freed.
 * Real-time: in loop
 */
const char *punctual_strerror(int error) PUNCTUAL_NOEXCEPT;

/*
 * The calling thread's last failure in words: what was requested, and which task, period or CPU it is
 * about. Empty before the first one, and where punctual_strerror() says all there is, as of most that
 * a loop calls, which must not allocate. Valid until the thread's next call of this library that
 * fails, and never to be freed.
 * Real-time: reader side
 */
const char *punctual_last_error(void) PUNCTUAL_NOEXCEPT;

/*
 * The version of the library, as "0.1.0".
 * Real-time: in loop
 */
const char *punctual_version(void) PUNCTUAL_NOEXCEPT;

/* ---- Clock ----------------------------------------------------------------------------------- */

/*
 * Now, ns on CLOCK_MONOTONIC. Cannot fail.
 * Real-time: in loop
 */
uint64_t punctual_now_ns(void) PUNCTUAL_NOEXCEPT;

/*
 * Waits until at_ns: sleeps until margin_ns before it, then spins. With a margin of 0 it only
 * sleeps; with one that reaches back to now or beyond (UINT64_MAX, say) it only spins. Returns at
 * once when the instant has passed.
 *   -EINTR   a signal was handled during the sleep; the instant has not come
 * Real-time: in loop, waits
 */
int punctual_wait_until_ns(uint64_t at_ns, uint64_t margin_ns) PUNCTUAL_NOEXCEPT;

/*
 * An instant of clock_gettime(2) as ns.
 *   -EINVAL  negative, or tv_nsec not below 10^9
 *   -ERANGE  beyond 2^64 ns (584 years)
 * Real-time: in loop
 */
int punctual_ns_from_timespec(const struct timespec *from, uint64_t *to_ns) PUNCTUAL_NOEXCEPT;

/*
 * ns as an instant for clock_nanosleep(2) and its like.
 * Real-time: in loop
 */
int punctual_timespec_from_ns(uint64_t from_ns, struct timespec *to) PUNCTUAL_NOEXCEPT;

/* ---- What a cycle is, and what a loop did ---------------------------------------------------- */

/* One cycle of a loop or of a task. */
typedef struct punctual_cycle {
    size_t size;         /* sizeof(punctual_cycle) */
    uint64_t n;          /* releases before this one: of a loop since its first, of a task since
                            the epoch of its executive, which is long ago */
    uint64_t release_ns; /* when it was due */
    int64_t lateness_ns; /* how long after that it began */
    uint64_t missed;     /* releases since the last cycle that never ran */
    uint64_t dt_ns;      /* from the last cycle's release to this one: what an integrator has to
                            go on by; the period, for the first */
    uint64_t next_ns;    /* when the next cycle is due, the first release that was still to come
                            at the start; of a unit, when its budget is spent: what still runs
                            then has overrun */
    uint64_t part;       /* how often the task broke this cycle off before: it goes on where it
                            was. Of a calendar; 0 elsewhere */
} punctual_cycle;

/*
 * What a loop or a task did so far. Each release either ran or was missed: ran + missed are all of
 * them, from the first one to the last that is counted, and censored ones are among the missed.
 */
typedef struct punctual_stats {
    size_t size;               /* sizeof(punctual_stats) */
    uint64_t ran;              /* cycles; one that takes several units counts once */
    uint64_t missed;           /* releases that never ran, as far as that is known */
    uint64_t started_late;     /* later than the task's start_ns: of a task only */
    uint64_t over_budget;      /* ran longer than the task's budget_ns: of a task only */
    uint64_t over_release;     /* still running at next_ns of their cycle: overruns */
    uint64_t over_deadline;    /* finished after the task's deadline_ns: of a task only */
    uint64_t last_release_ns;  /* the release of the last cycle */
    uint64_t last_cycle;       /* and its n */
    int64_t min_ns;            /* lateness: smallest, largest, mean; 0 without releases */
    int64_t max_ns;
    double mean_ns;
    uint64_t stalls;           /* gaps above 1 us inside spins, when the CPU was elsewhere: of a */
    uint64_t longest_stall_ns; /*   loop only */
    uint64_t stalled_ns;       /* all of them together */
    uint64_t demoted;          /* how often the task's own thread lost its real-time policy because
                                  it ran on, once the run is over: of a task only */
    uint32_t consistent;       /* whether all but the stalls is of one moment */
    uint32_t forced;           /* 0, or how the watchdog ended the loop: 1 its thread was made
                                  SCHED_OTHER, 2 that was refused, 3 it did not get the CPU, 4 it
                                  blocked, 5 it made no progress and nothing shows why */
    uint64_t censored;         /* those of the missed that no cycle followed before the end: max_ns,
                                  mean_ns and quantiles have them as late as the end was after them,
                                  which is the least that they were */
} punctual_stats;

/*
 * Empties a cycle: punctual_cycle_init(&cycle, sizeof cycle).
 * Real-time: in loop
 */
int punctual_cycle_init(punctual_cycle *cycle, size_t size) PUNCTUAL_NOEXCEPT;

/*
 * Empties counts: punctual_stats_init(&stats, sizeof stats).
 * Real-time: in loop
 */
int punctual_stats_init(punctual_stats *stats, size_t size) PUNCTUAL_NOEXCEPT;

/* ---- A clock that is followed ---------------------------------------------------------------- */

/*
 * Another clock than CLOCK_MONOTONIC whose time the releases of loops and executives keep to: a
 * thread reads it twice a second and steers a map of one time onto the other, by 100 parts in a
 * million at most. Set it as the `follow` of their options: all their instants are on its time then,
 * and PUNCTUAL_PHASE_QUIET is zero.
 */
typedef struct punctual_follow punctual_follow;

/* Which clock. */
enum {
    PUNCTUAL_REFERENCE_TAI = 0, /* CLOCK_TAI: the time of day without leap seconds */
    PUNCTUAL_REFERENCE_PTP = 1  /* a PTP hardware clock */
};

/* How well it follows. */
typedef struct punctual_follow_info {
    size_t size;           /* sizeof(punctual_follow_info) */
    double drift_ppb;      /* how much faster it runs than CLOCK_MONOTONIC, parts of 10^9 */
    int64_t phase_ns;      /* reference minus map at the last reading, */
    double phase_rms_ns;   /*   the root of its mean square over all readings, */
    uint64_t phase_max_ns; /*   and its largest amount */
    uint64_t readings;     /* that were followed */
    uint64_t steps;        /* of the reference, by a millisecond or more, */
    int64_t stepped_ns;    /*   and what of them is not followed, in all */
    uint64_t stops;        /* of the reference */
    uint64_t limited;      /* readings at which the limit held the map back */
    uint64_t unread;       /* how often the reference could not be read */
    uint64_t late;         /* how often a change of pace was known only after it was to begin */
} punctual_follow_info;

/*
 * Empties it: punctual_follow_info_init(&info, sizeof info).
 * Real-time: in loop
 */
int punctual_follow_info_init(punctual_follow_info *info, size_t size) PUNCTUAL_NOEXCEPT;

/*
 * Follows a clock; device is the path of a PTP clock (/dev/ptp0) and null for TAI. period_ns is the
 * period of the loops on it, or 0: where the reference steps, what is left of the step over whole
 * periods is followed, without a period nothing of it. A loop whose period is above both this and
 * 100 ms is refused: a change of the clock's pace would reach it too late. Takes 80 ms.
 * *follow is null where it fails.
 *   -EINVAL  also a device that is no PTP clock
 *   -EIO     the clock could not be read
 *   -EAGAIN  a thread could not be started
 *   or what open(2) said of the device
 * Real-time: setup only
 */
int punctual_follow_create(punctual_follow **follow, int reference, const char *device,
                           uint64_t period_ns) PUNCTUAL_NOEXCEPT;

/*
 * How well it follows; from any thread.
 * Real-time: reader side
 */
int punctual_follow_status(const punctual_follow *follow,
                           punctual_follow_info *info) PUNCTUAL_NOEXCEPT;

/*
 * Frees it. Loops and executives that were started on it keep it followed until they end. No other
 * thread may use it at the time or later.
 *   0        also for null: the handle is gone
 *   -ECHILD  in a child of fork(2): it stays
 * Real-time: setup only
 */
int punctual_follow_destroy(punctual_follow *follow) PUNCTUAL_NOEXCEPT;

/* ---- How a thread runs and waits ------------------------------------------------------------- */

/* Where releases lie on CLOCK_MONOTONIC, or on the clock that is followed. */
enum {
    PUNCTUAL_PHASE_QUIET = 0, /* away from the kernel's tick, whose place is measured; zero where no
                                 tick is found, or the period meets it at any phase */
    PUNCTUAL_PHASE_ZERO = 1,  /* multiples of the period: separate processes agree on them */
    PUNCTUAL_PHASE_AT = 2     /* phase_ns after those */
};

/* How a release is waited for. */
enum {
    PUNCTUAL_WAIT_ADAPTIVE = 0, /* learns how early to wake on this machine, and then spins */
    PUNCTUAL_WAIT_SLEEP = 1,    /* an absolute sleep, nothing else */
    PUNCTUAL_WAIT_FIXED = 2,    /* wakes margin_ns early (0: 125 us), then spins */
    PUNCTUAL_WAIT_REARM = 3,    /* NIST: looks every margin_ns (0: sqrt(T S), S measured), spins */
    PUNCTUAL_WAIT_SPIN = 4      /* sleeps a tenth of the period and 20 us at least, then spins */
};

/* How the thread of a loop or of an executive runs and waits. */
typedef struct punctual_options {
    size_t size;               /* sizeof(punctual_options) */
    uint64_t period_num_ns;    /* the period is num/den ns; of a loop only, and without default */
    uint64_t period_den;       /* 1 */
    uint64_t phase_ns;         /* for PUNCTUAL_PHASE_AT; of a loop below the period */
    uint64_t margin_ns;        /* for PUNCTUAL_WAIT_FIXED, below the period: so long it spins in
                                  each; for PUNCTUAL_WAIT_REARM, at most the period */
    uint64_t watchdog_ns;      /* stop a loop that makes no progress for so long, and make its
                                  thread SCHED_OTHER: at least two periods; 0: three periods, and at
                                  least 2 s; UINT64_MAX: nobody watches. A step of the setup may
                                  take 4 s. The watchdog is a thread of this process, and ends with
                                  it, as the loop does */
    uint64_t grace_ns;         /* how long a task with a thread of its own and
                                  PUNCTUAL_OVERRUN_TERMINATE may go on after it was told, before it
                                  loses its real-time policy until it returns; 0: its period. Of an
                                  executive only */
    double budget_share;       /* for PUNCTUAL_WAIT_ADAPTIVE: the share of the CPU that waiting may
                                  take, above 0 and at most 1; 0.1 */
    double late_share;         /* and the share of wakes that may be late, in [0, 1); 0.001;
                                  0: the least lateness that the budget pays */
    const int32_t *cpus;       /* several CPUs, with a thread on each, the first one the executive's
                                  own: each task goes where it fits best; in place of cpu. Read
                                  during the call. Null; of an executive only */
    size_t cpu_count;          /* how many; 0 */
    const char *samples;       /* the path of a sample file, which `punctual analyse` reads, for the
                                  lateness of every cycle. A file of that name stays until the first
                                  samples are written, and is replaced then. Tasks that come later
                                  or that a device triggers are not in it. Null: none */
    const punctual_follow *follow; /* the clock whose time releases keep to; null: CLOCK_MONOTONIC */
    int32_t phase;             /* a PUNCTUAL_PHASE_; PUNCTUAL_PHASE_QUIET */
    int32_t wait;              /* a PUNCTUAL_WAIT_ */
    int32_t cpu;               /* the CPU to run on; -1: any */
    int32_t priority;          /* SCHED_FIFO of 1 to 98; 0: SCHED_OTHER; 90 */
    uint32_t lock_memory;      /* 1: keep all memory of the process in RAM, by mlockall(2), while
                                  there is a loop that wants it */
    uint32_t hold_idle_states; /* 1: keep CPUs out of deep idle states meanwhile, by
                                  /dev/cpu_dma_latency: costs power */
    uint32_t learn_first;      /* 1: a wait that learns does so for a third of a second before the
                                  first cycle, and goes on in the loop; 0: the first cycles teach
                                  it */
    uint32_t strict;           /* 1: what the kernel refuses (priority, memory, idle states)
                                  is an error, -EACCES, and so is a budget inline above the period
                                  of a more urgent task that it makes late, -ENOSPC; 0: _refused()
                                  lists it, the summary warns, and all runs without */
    const void *learned;       /* what punctual_loop_learned() or punctual_executive_learned() gave,
                                  also at an earlier start of the program: the wait begins with it
                                  and checks it. What is of no use here (damaged, of another
                                  machine, kernel, boot parameters or period) is left, which
                                  _refused() lists, and it learns as without. Read during the call.
                                  Null; for PUNCTUAL_WAIT_ADAPTIVE */
    size_t learned_size;       /* how many bytes; 0 */
} punctual_options;

/*
 * Fills in the defaults, those that the comments above end with or begin with:
 * punctual_options_init(&options, sizeof options).
 * Real-time: setup only
 */
int punctual_options_init(punctual_options *options, size_t size) PUNCTUAL_NOEXCEPT;

/* How releases are approached, and what was learned of the machine. */
typedef struct punctual_wait_info {
    size_t size;             /* sizeof(punctual_wait_info) */
    uint64_t phase_ns;       /* of releases from multiples of the period; of an executive its epoch */
    uint64_t tick_ns;        /* with quiet: the period of the kernel's tick, */
    uint64_t clear_ns;       /* and how far each release is from the nearest one */
    uint64_t hop_ns;         /* a short sleep; 0: one sleep however long it is */
    uint64_t margin_ns;      /* how long before the release the last sleep ends */
    uint64_t learned_cycles; /* with learns: the cycles since it last calibrated, */
    double late_share;       /* the share of them that woke late, */
    double cpu_share;        /* and the share of the CPU that waiting takes, as computed */
    int32_t priority;        /* what the thread really has; 0: SCHED_OTHER */
    uint32_t hops;           /* how many short sleeps come last, after one as long as it may be;
                                UINT32_MAX: short ones all the way */
    uint32_t trials_late;    /* with learns: late wakes while it tried another way to wake */
    uint32_t quiet;          /* 1: a phase away from the tick */
    uint32_t learns;         /* 1: the wait is adaptive */
    uint32_t calibrating;    /* 1: it is still trying each approach in turn */
    uint32_t reachable;      /* 1: late_share is within the budget on this machine, as far as known */
    uint32_t extrapolated;   /* 1: too few sleeps seen for the aim; the margin is wide until then */
    uint64_t moves;          /* of a loop how often its releases were moved away from the kernel's
                                tick, which they met while it ran; of an executive 0 */
} punctual_wait_info;

/*
 * Empties it: punctual_wait_info_init(&info, sizeof info).
 * Real-time: in loop
 */
int punctual_wait_info_init(punctual_wait_info *info, size_t size) PUNCTUAL_NOEXCEPT;

/* ---- A loop of one period -------------------------------------------------------------------- */

/*
 * A loop. It belongs to the thread that created it, which alone waits and destroys; a cycle that
 * runs over its next release makes that one missed, and the phase stays. A thread runs one loop at a
 * time: of two that it waits for in turns each misses what passes while it waits or works for the
 * other, and the summary of the later one warns of it. Several rates in one thread are an executive's.
 */
typedef struct punctual_loop punctual_loop;

/*
 * Makes the calling thread a loop's: CPU, policy, memory, clock (50 ms), quiet phase (90 ms, or
 * 300 ms where the kernel's tick is hard to see), and a third of a second for the wait to learn,
 * twice that where releases met the tick. *loop is null where it fails.
 *
 * Threads and processes that this thread starts from then on inherit its CPU, and not its policy: they
 * are SCHED_OTHER, and run only in the time that the loop leaves of that CPU, as one that is to stop it
 * does too. Start them before, or give them other CPUs (pthread_attr_setaffinity_np(3)).
 *   -EINVAL  an option that cannot be; punctual_last_error() names it
 *   -EACCES  the kernel refused something, and the options are strict
 *   -EAGAIN  a thread could not be started
 *   or what open(2) said of the sample file
 * Real-time: setup only
 */
int punctual_loop_create(punctual_loop **loop, const punctual_options *options) PUNCTUAL_NOEXCEPT;

/*
 * Waits for the next release to come and fills in its cycle, which may be null. The first call
 * fixes which release is the first, one that is still to come.
 *   -ECANCELED  the loop was stopped
 *   -ETIMEDOUT  the watchdog stopped it; punctual_last_error() says why: it did not yield, did not get
 *               the CPU, blocked, or made no progress
 *   -EPERM      this is not the thread that created it
 *   -EBUSY      called from a signal handler that interrupted it
 *   -EINVAL     also a cycle whose size was never set: nothing was waited for
 * Real-time: in loop, waits
 */
int punctual_loop_wait(punctual_loop *loop, punctual_cycle *cycle) PUNCTUAL_NOEXCEPT;

/*
 * Tells the loop to stop, for good: from any thread, and from a signal handler. A loop that spins
 * hears of it at once, one that sleeps at its next wake. Releases from now on are none of its run:
 * what was due before and never ran is missed.
 * Real-time: in loop
 */
int punctual_loop_stop(punctual_loop *loop) PUNCTUAL_NOEXCEPT;

/*
 * *to is 1 once it was stopped, also by the watchdog: no further cycle begins then. From any thread.
 * Real-time: in loop
 */
int punctual_loop_stopped(const punctual_loop *loop, int *to) PUNCTUAL_NOEXCEPT;

/*
 * What the loop did so far, from any thread. A cycle is counted once it is over: at the beginning of
 * the next wait, or when the loop's own thread asks for this or is stopped.
 * Real-time: reader side
 */
int punctual_loop_stats(const punctual_loop *loop, punctual_stats *stats) PUNCTUAL_NOEXCEPT;

/*
 * A lateness that at least this share of the cycles did not exceed, at most 0.8 % above the exact
 * one and never above the exact maximum; from any thread. A share of 0.999 says little before some
 * ten thousand cycles.
 *   -EINVAL   a share outside [0, 1]
 *   -ENODATA  no cycle ran yet
 * Real-time: reader side
 */
int punctual_loop_quantile_ns(const punctual_loop *loop, double share,
                              int64_t *to_ns) PUNCTUAL_NOEXCEPT;

/*
 * How releases are approached at present.
 *   -EPERM  this is not the thread that created the loop
 * Real-time: in loop
 */
int punctual_loop_wait_info(punctual_loop *loop, punctual_wait_info *info) PUNCTUAL_NOEXCEPT;

/* What a wait learned has so many bytes. */
#define PUNCTUAL_LEARNED_BYTES 56

/*
 * What its wait learned of this machine, for options.learned of the next start: PUNCTUAL_LEARNED_BYTES
 * bytes, to be kept as they are, as in a file. It holds for the same machine, kernel, boot parameters
 * and period; options.cpu should be the same too. Before punctual_loop_destroy(), as after the last
 * cycle.
 *   -ENODATA  it has not learned yet, or its wait is not PUNCTUAL_WAIT_ADAPTIVE
 *   -ERANGE   size is below PUNCTUAL_LEARNED_BYTES
 *   -EPERM    this is not the thread that created the loop
 * Real-time: setup only
 */
int punctual_loop_learned(punctual_loop *loop, void *bytes, size_t size) PUNCTUAL_NOEXCEPT;

/*
 * What the kernel refused, as "SCHED_FIFO 90: EPERM; lock memory: ENOMEM", and behind that why
 * options.learned is of no use; empty when nothing. What grants it is in punctual_loop_summary(), and
 * in punctual_last_error() where the options are strict. Cut to size bytes, the closing zero included;
 * from any thread.
 *   -ERANGE  it was cut
 * Real-time: reader side
 */
int punctual_loop_refused(const punctual_loop *loop, char *text, size_t size) PUNCTUAL_NOEXCEPT;

/*
 * Ends the loop, as punctual_loop_destroy() does, and gives what it did as text: a line with its counts
 * and quantiles (punctual_loop_quantile_ns()), how it ended, what the kernel refused and the way out,
 * what else is to be known of the run, what became of the sample file. The handle stays: the loop waits
 * no more (-ECANCELED, -ETIMEDOUT), can be read as before, and is to be destroyed. Cut to size bytes,
 * the closing zero included; may be called again, as with more room.
 *   -ERANGE  it was cut
 *   -EPERM   this is not the thread that created it: it goes on
 *   -EBUSY   called from a signal handler that interrupted a call of the loop: likewise
 * Real-time: setup only
 */
int punctual_loop_summary(punctual_loop *loop, char *text, size_t size) PUNCTUAL_NOEXCEPT;

/*
 * Ends the loop, completes its sample file, and puts back what was changed of its thread and
 * process. No other thread may use it at the time or later.
 *   0        also for null: the handle is gone
 *   -EIO     its sample file is not complete, or was removed or changed by another program: the
 *            handle is gone all the same
 *   -EPERM   this is not the thread that created it: the handle stays, and the loop goes on
 *   -EBUSY   called from a signal handler that interrupted a call of the loop: likewise
 *   -ECHILD  in a child of fork(2): likewise, in the parent
 * Real-time: setup only
 */
int punctual_loop_destroy(punctual_loop *loop) PUNCTUAL_NOEXCEPT;

/* ---- An executive of many tasks -------------------------------------------------------------- */

/*
 * Tasks of any periods, wherever they run: in the executive's own thread, each to its end, the most
 * urgent of those that are due first; in a thread on another CPU; or in a thread of their own, where
 * the kernel preempts them by priority. Units at fixed places of a frame, with the other tasks where
 * their budgets fit in between. Tasks that a device triggers, and background work where there is
 * nothing else to do.
 *
 * Add tasks and run; tasks may come and go while it runs. Each run builds the executive anew from
 * what was added, and its counts start anew.
 *
 * A task that is a process of its own is not added here: it needs a program, restarts, a safe value
 * and a time to register in, which `punctual run FILE` reads from a file; its process uses
 * punctual_register() and punctual_wait() below.
 */
typedef struct punctual_executive punctual_executive;

/*
 * The body of a task: is called once a cycle, by the thread that runs the task, with the data of its
 * punctual_task. The cycle is valid for the call. Returns a PUNCTUAL_ of those below, or a negative
 * number, which ends the run and is what that returns. It must neither throw nor longjmp out. A
 * task that takes long asks punctual_cycle_cancelled(), or looks whether punctual_now_ns() has
 * passed cycle->next_ns, and returns with its outputs in a safe state. Bodies in different threads
 * run at the same time: what they share is theirs to guard.
 */
typedef int (*punctual_task_fn)(void *data, const punctual_cycle *cycle);

/* What a body returns; any other positive number is as PUNCTUAL_STOP. */
enum {
    PUNCTUAL_CONTINUE = 0, /* this cycle is done */
    PUNCTUAL_STOP = 1,     /* end the run, which returns 0 */
    PUNCTUAL_BREAK = 2     /* this cycle goes on in the task's next unit of the calendar; a
                              triggered task ends, and the others go on; elsewhere as
                              PUNCTUAL_CONTINUE */
};

/*
 * A trigger: is called by the thread of its task, with its trigger_data, and blocks until the
 * task's next cycle. Returns a positive number for a cycle, 0 when there are no more, or a negative
 * number, which ends the run and is what that returns. It must return, with whatever number, once
 * punctual_executive_stopped() says so, and must neither throw nor longjmp out.
 */
typedef int (*punctual_wait_fn)(void *data);

/*
 * Background work: one slice of it. Returns PUNCTUAL_CONTINUE for another slice where there is time,
 * PUNCTUAL_BREAK when there is nothing more to do before the next release, PUNCTUAL_STOP or a
 * negative number as a body does.
 */
typedef int (*punctual_idle_fn)(void *data);

/*
 * Whether the cycle that the calling thread runs is to come to its end: 1 when its next release has
 * passed (of a unit of a calendar: its budget is spent), or, of a task in a thread of its own, the
 * run ends, and the task has PUNCTUAL_OVERRUN_TERMINATE. 0 before that, for any other task, and
 * where the thread runs no cycle. A monitor beside the executive, on another CPU where there is one,
 * looks every 2 ms; without another CPU, and without the right to a priority above the task's, it
 * may come late. Cannot fail.
 * Real-time: in loop
 */
int punctual_cycle_cancelled(void) PUNCTUAL_NOEXCEPT;

/* Where a task's releases lie within its period; PUNCTUAL_PHASE_AT is phase_ns after the epoch. */
enum {
    PUNCTUAL_PHASE_BALANCED = 0, /* where it meets the fewest others */
    PUNCTUAL_PHASE_AFTER = 3     /* phase_ns after the release of the task named in `after`, which
                                    has the same period */
};

/* What happens to a task that is still waiting or running at its next release. */
enum {
    PUNCTUAL_OVERRUN_SKIP = 0,      /* releases that passed are missed and counted; the phase
                                       stays */
    PUNCTUAL_OVERRUN_BURST = 1,     /* up to `burst` of them run one after the other */
    PUNCTUAL_OVERRUN_DELAY = 2,     /* the next release is a period after the finish; the phase
                                       moves */
    PUNCTUAL_OVERRUN_TERMINATE = 3, /* as SKIP, and punctual_cycle_cancelled() tells the task, which
                                       ends when it returns */
    PUNCTUAL_OVERRUN_STOP = 4       /* the run ends with -ETIME */
};

/* Where a task's body runs. */
enum {
    PUNCTUAL_PLACE_INLINE = 0, /* in the executive's own thread; with several CPUs in that of the
                                  CPU where it fits best */
    PUNCTUAL_PLACE_CPU = 1,    /* in a thread of the executive's on place_cpu, beside the tasks that
                                  are there too */
    PUNCTUAL_PLACE_THREAD = 2  /* in a thread of its own, on place_cpu (-1: any), SCHED_FIFO
                                  place_priority below the executive's (0: by the order of urgency);
                                  it waits as the options say where it waits for itself
                                  (PUNCTUAL_OVERRUN_DELAY), and is released by the executive
                                  otherwise. One that goes on past its release for long loses its
                                  real-time policy until it returns */
};

/* A task. */
typedef struct punctual_task {
    size_t size;            /* sizeof(punctual_task) */
    const char *name;       /* of its own, UTF-8, copied; without default */
    punctual_task_fn run;   /* its body; without default */
    void *data;             /* handed to the body; null */
    const char *after;      /* for PUNCTUAL_PHASE_AFTER: a task's name, copied */
    punctual_wait_fn wait;  /* what triggers it in place of releases; null: it has a period. Such a
                               task has a thread of its own, and nothing of it is late: its
                               punctual_stats are of the distance from start to start */
    void *trigger_data;     /* handed to wait; null */
    uint64_t period_num_ns; /* the period is num/den ns; without default. With wait: 0, or what is
                               expected, which cycle->next_ns then tells */
    uint64_t period_den;    /* 1 */
    uint64_t phase_ns;      /* for PUNCTUAL_PHASE_AT and PUNCTUAL_PHASE_AFTER: below the period */
    uint64_t budget_ns;     /* its longest execution, at most the period; 0: not known */
    uint64_t deadline_ns;   /* from release to the latest finish; 0: the period */
    uint64_t start_ns;      /* from release to the latest start that is not late; 0: any */
    int32_t phase;          /* PUNCTUAL_PHASE_BALANCED, _AT or _AFTER */
    int32_t priority;       /* 1 to 99, the higher first; 0 for all tasks: rate-monotonic */
    int32_t on_overrun;     /* a PUNCTUAL_OVERRUN_ */
    uint32_t burst;         /* for PUNCTUAL_OVERRUN_BURST: at least 1 */
    int32_t place;          /* a PUNCTUAL_PLACE_ */
    int32_t place_cpu;      /* for PUNCTUAL_PLACE_CPU and _THREAD; -1 */
    int32_t place_priority; /* for PUNCTUAL_PLACE_THREAD; 0 */
    int32_t trigger_fd;     /* a descriptor that triggers it in place of wait: a cycle each time that
                               it is readable or has an error to be read, until it is closed at its
                               other end. The body reads what is there, which may be an error. It
                               stays open until the run has ended; -1: none */
} punctual_task;

/* A unit: a place in the frame of the executive's calendar. */
typedef struct punctual_unit {
    size_t size;          /* sizeof(punctual_unit) */
    const char *name;     /* of its own, UTF-8, copied; without default */
    const char *of;       /* the task whose unit it is, copied; null: one of the unit's name */
    punctual_task_fn run; /* the body of its task; null: another unit of the task has it.
                             cycle->next_ns is when the unit's budget is spent */
    void *data;           /* handed to the body; null */
    const char *after;    /* the unit behind whose place its own comes, by gap_ns, copied; null: it
                             is at_ns after the start of the frame */
    uint64_t at_ns;       /* 0 */
    uint64_t gap_ns;      /* 0 */
    uint64_t budget_ns;   /* its longest execution, which is the length of its place; without
                             default */
    uint64_t deadline_ns; /* from the start of its place to its latest finish: from the budget to
                             the frame; 0: the budget. One that could not start by then is missed */
    uint64_t start_ns;    /* from the start of its place to its latest start that is not late; 0:
                             any */
    int32_t on_overrun;   /* what a time-out does: PUNCTUAL_OVERRUN_SKIP, _TERMINATE or _STOP; units
                             of one task that say another than SKIP say the same */
    uint32_t reserved;    /* 0 */
    uint64_t every_ns;    /* for punctual_executive_schedule(): how often it comes, which divides the
                             frame; 0: once a frame */
    const char *excludes; /* for punctual_executive_schedule(): a task of which no unit is placed
                             between two of this one's task in one period, copied; null */
} punctual_unit;

/* Where a task is. */
typedef struct punctual_layout {
    size_t size;       /* sizeof(punctual_layout) */
    uint64_t phase_ns; /* from the epoch to its release 0; of a unit's task from the start of the
                          frame to its first unit; UINT64_MAX for one that a device triggers */
    uint32_t rank;     /* its place in the order of urgency in its thread, 0 the first; UINT32_MAX
                          for one that is alone in its thread */
    int32_t cpu;       /* the CPU that it is pinned to; -1: any */
    uint64_t response_ns; /* from its release to its finish at the longest, if all tasks of its thread
                             keep their budgets (what the machine adds comes on top); UINT64_MAX:
                             it has no bound; 0: not known, because one has no budget, beside a
                             calendar, or in a thread of its own */
    uint64_t deadline_ns; /* its deadline, or its period; 0: none, as of a unit's task */
} punctual_layout;

/*
 * Fills in the defaults: punctual_task_init(&task, sizeof task).
 * Real-time: setup only
 */
int punctual_task_init(punctual_task *task, size_t size) PUNCTUAL_NOEXCEPT;

/*
 * Fills in the defaults: punctual_unit_init(&unit, sizeof unit).
 * Real-time: setup only
 */
int punctual_unit_init(punctual_unit *unit, size_t size) PUNCTUAL_NOEXCEPT;

/*
 * Empties it: punctual_layout_init(&layout, sizeof layout).
 * Real-time: in loop
 */
int punctual_layout_init(punctual_layout *layout, size_t size) PUNCTUAL_NOEXCEPT;

/*
 * An executive without tasks. *executive is null where it fails.
 * Real-time: setup only
 */
int punctual_executive_create(punctual_executive **executive) PUNCTUAL_NOEXCEPT;

/*
 * One more task; *index, which may be null, numbers tasks and units from 0 in the order of adding,
 * never anew. What tasks cannot be together, build and run say; once it was built, this does, and
 * adds nothing then.
 *
 * While it runs, for any thread but its loops': the loop takes the new task, which is not triggered,
 * at its first moment with enough time in hand, within some 100 ms, or once the task that runs then
 * has returned; and then this returns. One with a thread of its own gets that now, waits for its
 * releases itself, and its samples are not recorded. The task begins at its first release after
 * that. The others keep every release, their phases and their counts; ranks are counted anew.
 *   -EINVAL   what cannot be of the task alone; punctual_executive_build() says what of its budget,
 *             deadline, phase and priority cannot be
 *   -EBADF    trigger_fd is no open descriptor
 *   -EDEADLK  called by a task of the loop that would take it
 *   -EBUSY    in use by another call; it runs, and the task is triggered
 *   -E2BIG    32 tasks with threads of their own were added while it runs
 *   or, once it is built, what punctual_executive_build() says
 * Real-time: setup only
 */
int punctual_executive_add(punctual_executive *executive, const punctual_task *task,
                           uint32_t *index) PUNCTUAL_NOEXCEPT;

/*
 * One more unit of its calendar; *index as with punctual_executive_add(). A task has one cycle a
 * frame (or every_ns, see punctual_executive_schedule()), and in it one unit or several: with
 * PUNCTUAL_BREAK it breaks off at the end of one and goes on in the next, be it in the next frame. A
 * unit that runs longer than its budget is timed out: it is counted, punctual_cycle_cancelled() tells
 * it where it is to be terminated, and what comes next starts late. Other tasks of the executive start
 * only where their budgets fit before the next unit and 2 us, so that each has to have one. Index and
 * statistics of a unit are those of its task.
 *   -EINVAL  what cannot be of the unit alone; punctual_executive_build() says what of its budget,
 *            deadline and place cannot be
 *   -EBUSY   it runs, or is in use by another call
 *   or, once it is built, what punctual_executive_build() says
 * Real-time: setup only
 */
int punctual_executive_add_unit(punctual_executive *executive, const punctual_unit *unit,
                                uint32_t *index) PUNCTUAL_NOEXCEPT;

/*
 * Sets the frame in which its units have their places, and which comes round for ever: num/den ns, a
 * whole number of nanoseconds. A run begins with the first frame that can be whole, its other tasks
 * too, in threads and processes as well; only those that a device triggers run before it.
 *   -EBUSY  it runs, or is in use by another call
 * Real-time: setup only
 */
int punctual_executive_frame(punctual_executive *executive, uint64_t num_ns,
                             uint64_t den) PUNCTUAL_NOEXCEPT;

/*
 * Has places made for its units, in the place of those that at_ns and after give: each unit runs once
 * in every_ns, not before at_ns of that (after: behind the other unit and gap_ns) and not later than
 * deadline_ns from there (0: the end of its period). Further runs of a unit belong to further cycles
 * of its task. Of few units places are found wherever there are some; what of many was not found is
 * told apart from what cannot be (punctual_last_error()). Takes seconds at most.
 *   -EBUSY  it runs, or is in use by another call
 *   or, once it is built, what punctual_executive_build() says
 * Real-time: setup only
 */
int punctual_executive_schedule(punctual_executive *executive) PUNCTUAL_NOEXCEPT;

/*
 * Sets its background work, in slices of at most slice_ns: one runs in the executive's own thread
 * where it ends before the next release. There is one: a later call replaces what an earlier one set.
 *   -EINVAL  also a slice of 0, or no function
 *   -EBUSY   it runs, or is in use by another call
 * Real-time: setup only
 */
int punctual_executive_idle(punctual_executive *executive, uint64_t slice_ns, punctual_idle_fn run,
                            void *data) PUNCTUAL_NOEXCEPT;

/*
 * Lets the budgets ask for more than the whole CPU: releases will be missed.
 *   -EBUSY  it runs, or is in use by another call
 * Real-time: setup only
 */
int punctual_executive_allow_overload(punctual_executive *executive) PUNCTUAL_NOEXCEPT;

/*
 * Takes a task or unit away, for good; a task in a loop also while that runs, as
 * punctual_executive_add() adds one: once this has returned, its body is not called any more, also
 * where it was due. The last one may go as well; a run without tasks waits for one.
 *   -ENOENT   no task or unit of this index
 *   -EDEADLK  called by a task of the loop that has it
 *   -EBUSY    in use by another call; it runs, and the task has had a thread of its own since
 *             before it ran, or is a unit
 *   or, once it is built, what punctual_executive_build() says of the others
 * Real-time: setup only
 */
int punctual_executive_remove(punctual_executive *executive, uint32_t index) PUNCTUAL_NOEXCEPT;

/*
 * As punctual_executive_remove(), and *stats is what the task did, as punctual_executive_task_stats()
 * has it: up to its end, its last cycle included, and all 0 where it never ran. Those counts are gone
 * with the task otherwise.
 *   -EINVAL  also stats whose size was never set: nothing is removed
 *   or what punctual_executive_remove() says: nothing is removed, and *stats stays as it was
 * Real-time: setup only
 */
int punctual_executive_remove_counted(punctual_executive *executive, uint32_t index,
                                      punctual_stats *stats) PUNCTUAL_NOEXCEPT;

/*
 * Checks all of it and lays it out for these options (null: the defaults), so that the layout can be
 * requested before a run. Need not be called: a run does the same. punctual_last_error() names the
 * tasks and units that a failure is about.
 *   -EINVAL  options, budgets, deadlines, phases or priorities that cannot be; a CPU that this
 *            process may not use; a unit's task without a body or with two; no tasks
 *   -EEXIST  two tasks or units of one name
 *   -ENOENT  a task or unit after one that is not there, or a unit that excludes one
 *   -ENOSPC  the budgets on a CPU add up to more than all of it (on any: to more CPUs than are
 *            allowed); two units overlap, or one is not within the frame, or no places for all were
 *            found; the budget of a task fits into no gap between units
 *   -E2BIG   more tasks than ranks, or more than 65536 units
 *   -EBUSY   it runs, or is in use by another call
 * Real-time: setup only
 */
int punctual_executive_build(punctual_executive *executive,
                             const punctual_options *options) PUNCTUAL_NOEXCEPT;

/*
 * The most releases of its own thread that fall on one instant, or an upper bound of it, as it was
 * built last.
 *   -EINVAL  also: not built yet
 * Real-time: reader side
 */
int punctual_executive_peak(const punctual_executive *executive, uint64_t *to) PUNCTUAL_NOEXCEPT;

/*
 * What is to be said of it before it runs, a line each: which tasks may be late by their budgets, and
 * what throttling will do; empty when nothing. As it was built last; what comes with tasks that are
 * added later, and with a run, is in punctual_executive_summary(). Cut to size bytes, the closing zero
 * included.
 *   -EINVAL  also: not built yet
 *   -ERANGE  it was cut
 * Real-time: reader side
 */
int punctual_executive_warnings(const punctual_executive *executive, char *text,
                                size_t size) PUNCTUAL_NOEXCEPT;

/*
 * Where a task is, or the task of a unit: as it was built last, and as tasks came and went since.
 *   -EINVAL   also: not built yet
 *   -ENOENT   no task or unit of this index
 *   -ENODATA  it came while the last run ended, and was not laid out yet
 * Real-time: reader side
 */
int punctual_executive_task_layout(const punctual_executive *executive, uint32_t index,
                                   punctual_layout *layout) PUNCTUAL_NOEXCEPT;

/*
 * Runs it in the calling thread, for duration_ns from its first release on (0: without end), until
 * it is stopped, or until a task says so; may be called again. options, which may be null for
 * the defaults, says how the executive's own thread runs and waits, and its threads on other CPUs
 * likewise; period_num_ns stays 0, and the phase is that of the epoch of all tasks. Setup takes
 * 50 ms for the clock, 90 ms to find a quiet phase (300 ms where the tick is hard to see), and a
 * third of a second to learn. A body in a thread of its own that never returns keeps this from
 * returning. Returns 0 at the end of the duration, when stopped, and when a task returned
 * PUNCTUAL_STOP; otherwise
 *   what a function of its tasks returned, if that is negative
 *   -ETIME      a task overran whose answer to that is to stop; punctual_last_error() names it
 *   -ETIMEDOUT  the watchdog stopped it; punctual_last_error() says why, as of a loop
 *   -EACCES     the kernel refused something, and the options are strict: nothing ran
 *   -ENOSPC     a task is late behind another at any phases, and the options are strict
 *   -EAGAIN     a thread could not be started: nothing ran
 *   -EBUSY      it runs already
 *   or what punctual_executive_build() says, or open(2) of the sample file: nothing ran
 * Real-time: setup only
 */
int punctual_executive_run(punctual_executive *executive, const punctual_options *options,
                           uint64_t duration_ns) PUNCTUAL_NOEXCEPT;

/*
 * Tells the executive to stop, for good: from any thread, from a task, and from a signal handler.
 * Takes effect after the task that runs; where all wait, as with a loop, of which releases count as
 * well; in the set-up of a run within some 50 ms. A later run returns 0 at once.
 * Real-time: in loop
 */
int punctual_executive_stop(punctual_executive *executive) PUNCTUAL_NOEXCEPT;

/*
 * *to is 1 once it was stopped; once the time of its run is over, or a task ended it, and until
 * the next run. For triggers, which return then.
 * Real-time: in loop
 */
int punctual_executive_stopped(const punctual_executive *executive, int *to) PUNCTUAL_NOEXCEPT;

/*
 * What a task, or the task of a unit, did in the present run, or in the last; from any thread. All
 * 0 before its first one.
 *   -ENOENT  no task or unit of this index
 * Real-time: reader side
 */
int punctual_executive_task_stats(const punctual_executive *executive, uint32_t index,
                                  punctual_stats *stats) PUNCTUAL_NOEXCEPT;

/*
 * A quantile of a task's lateness, as punctual_loop_quantile_ns(); from any thread.
 *   -EINVAL   a share outside [0, 1]
 *   -ENOENT   no task or unit of this index
 *   -ENODATA  no cycle ran yet
 * Real-time: reader side
 */
int punctual_executive_task_quantile_ns(const punctual_executive *executive, uint32_t index,
                                        double share, int64_t *to_ns) PUNCTUAL_NOEXCEPT;

/*
 * How its own thread approached releases at the end of the last run.
 *   -ENODATA  none has ended yet
 *   -EBUSY    it runs
 * Real-time: setup only
 */
int punctual_executive_wait_info(const punctual_executive *executive,
                                 punctual_wait_info *info) PUNCTUAL_NOEXCEPT;

/*
 * What its own thread's wait learned of this machine in the last run, as punctual_loop_learned(): for
 * options.learned of a later run, also of another program, whose tasks in that thread have the same
 * shortest period.
 *   -ENODATA  none has ended yet, or it has not learned, or its wait is not PUNCTUAL_WAIT_ADAPTIVE
 *   -ERANGE   size is below PUNCTUAL_LEARNED_BYTES
 *   -EBUSY    it runs
 * Real-time: setup only
 */
int punctual_executive_learned(const punctual_executive *executive, void *bytes,
                               size_t size) PUNCTUAL_NOEXCEPT;

/*
 * What the kernel refused the last run, as punctual_loop_refused().
 *   -ENODATA  none has ended yet
 *   -ERANGE   it was cut
 *   -EBUSY    it runs
 * Real-time: setup only
 */
int punctual_executive_refused(const punctual_executive *executive, char *text,
                               size_t size) PUNCTUAL_NOEXCEPT;

/*
 * The last run as text: a line for each task with its counts and quantiles, how it ended, what was
 * refused, what became of the sample file. Cut to size bytes, the closing zero included.
 *   -ENODATA  none has ended yet
 *   -ERANGE   it was cut
 *   -EBUSY    it runs
 * Real-time: setup only
 */
int punctual_executive_summary(const punctual_executive *executive, char *text,
                               size_t size) PUNCTUAL_NOEXCEPT;

/*
 * Frees it. No other thread may use it at the time or later.
 *   0        also for null: the handle is gone
 *   -EBUSY   it runs, or is in use by another call: the handle stays, and so does all else
 *   -ECHILD  in a child of fork(2): the handle stays
 * Real-time: setup only
 */
int punctual_executive_destroy(punctual_executive *executive) PUNCTUAL_NOEXCEPT;

/* ---- A process that is a task of a supervisor ------------------------------------------------- */

/*
 * This process, registered with a supervisor, which releases it with the other tasks on one grid,
 * sees it, and ends and restarts it by its policy. It belongs to the thread that registered: that
 * one is released, and gets the task's priority and CPU.
 */
typedef struct punctual_process punctual_process;

/*
 * Registers with the supervisor that started this process (50 ms). task is the name that it takes
 * itself for; null for whatever it was started as. *process is null where it fails.
 *   -ENOTCONN  no supervisor started it, or the one that did is not its parent (any more)
 *   -EINVAL    it was started as another task
 *   -EBUSY     it is registered already
 *   -EPROTO    the supervisor is of another version
 *   or what the kernel said to the memory that the supervisor handed over
 * Real-time: setup only
 */
int punctual_register(punctual_process **process, const char *task) PUNCTUAL_NOEXCEPT;

/*
 * Joins the running supervisor of this name as one of its tasks that has no program of its own.
 * *process is null where it fails.
 *   -ECONNREFUSED  the supervisor said no, or does not answer; punctual_last_error() says why
 *   -EACCES        it is another user's
 *   -EINVAL        also what is no name
 *   or what connect(2) said: -ENOENT where none of this name runs
 * Real-time: setup only
 */
int punctual_join(punctual_process **process, const char *supervisor,
                  const char *task) PUNCTUAL_NOEXCEPT;

/*
 * Ends the cycle before, waits for the next one and fills it in; cycle may be null.
 *   -ECANCELED  the supervisor ends this task: leave in good order
 *   -EPIPE      the supervisor is gone: nobody releases or guards this task any more, and its thread
 *               is SCHED_OTHER from now on
 *   -EPERM      this is not the thread that registered
 *   -EBUSY      called from a signal handler that interrupted it
 *   -EINVAL     also a cycle whose size was never set: nothing was waited for
 * Real-time: in loop, waits
 */
int punctual_wait(punctual_process *process, punctual_cycle *cycle) PUNCTUAL_NOEXCEPT;

/*
 * Whether the cycle that runs is to come to its end: 1 when the next release has passed, or the
 * supervisor ends, and the task's policy is to be terminated. A task that takes long asks this, and
 * waits again with its outputs in a safe state.
 *   -EPERM  this is not the thread that registered
 * Real-time: in loop
 */
int punctual_cancelled(punctual_process *process, int *to) PUNCTUAL_NOEXCEPT;

/*
 * Gives out size bytes, whole, as the task's output; the rest of a longer output is zero. Others
 * read it until the next one, or until the supervisor puts the safe value there.
 *   -EMSGSIZE  longer than the task's output
 *   -EPERM     this is not the thread that registered
 * Real-time: in loop
 */
int punctual_commit(punctual_process *process, const void *bytes, size_t size) PUNCTUAL_NOEXCEPT;

/*
 * Ends the cycle before and leaves: the supervisor releases this task no more, and its output is
 * the safe value. Frees the object.
 *   0        also for null: the handle is gone
 *   -EPERM   this is not the thread that registered: the handle stays, and so does the task
 *   -EBUSY   called from a signal handler that interrupted a call of it: likewise
 *   -ECHILD  in a child of fork(2): likewise, in the parent
 * Real-time: setup only
 */
int punctual_unregister(punctual_process *process) PUNCTUAL_NOEXCEPT;

/* ---- A task of a supervisor, read from another process ---------------------------------------- */

/*
 * A task of a running supervisor, as others see it: its counts, its histogram and its output. Any
 * threads may read it, several at a time; the task does not notice, and cannot be disturbed. Once
 * the supervisor is gone, all stays as it was last.
 */
typedef struct punctual_watch punctual_watch;

/* Whose an output is. */
enum {
    PUNCTUAL_OUTPUT_TASK = 0, /* the task's: it committed it */
    PUNCTUAL_OUTPUT_SAFE = 1  /* the safe value: the task is not there, or has committed nothing */
};

/*
 * Opens the task of this name, of the running supervisor of that name. *watch is null where it
 * fails.
 *   -ECONNREFUSED  the supervisor said no, as to a task that it has not, or does not answer;
 *                  punctual_last_error() says why
 *   -EACCES        it is another user's
 *   -EPROTO        it is of another version
 *   -EINVAL        also what is no name
 *   or what connect(2) said: -ENOENT where none of this name runs
 * Real-time: setup only
 */
int punctual_watch_open(punctual_watch **watch, const char *supervisor,
                        const char *task) PUNCTUAL_NOEXCEPT;

/*
 * The task's period, which is num/den ns.
 * Real-time: reader side
 */
int punctual_watch_period(const punctual_watch *watch, uint64_t *to_num_ns,
                          uint64_t *to_den) PUNCTUAL_NOEXCEPT;

/*
 * What the task did since its supervisor started, over all of its processes.
 *   -EPROTO  its counts are there no more
 * Real-time: reader side
 */
int punctual_watch_stats(const punctual_watch *watch, punctual_stats *stats) PUNCTUAL_NOEXCEPT;

/*
 * A quantile of the task's lateness, as punctual_loop_quantile_ns().
 *   -EINVAL   a share outside [0, 1]
 *   -ENODATA  no cycle ran yet
 *   -EPROTO   its counts are there no more
 * Real-time: reader side
 */
int punctual_watch_quantile_ns(const punctual_watch *watch, double share,
                               int64_t *to_ns) PUNCTUAL_NOEXCEPT;

/*
 * How many bytes the task's output has: a multiple of 8, 4096 at most.
 * Real-time: reader side
 */
int punctual_watch_output_size(const punctual_watch *watch, size_t *to) PUNCTUAL_NOEXCEPT;

/*
 * The first size bytes of the output, all of one commit; *whose, which may be null, is a
 * PUNCTUAL_OUTPUT_. What drives an actuator looks at it.
 *   -EMSGSIZE  longer than the task's output
 *   -EAGAIN    the task commits faster than this can read; the bytes are rubbish
 * Real-time: reader side
 */
int punctual_watch_output(const punctual_watch *watch, void *to, size_t size,
                          int *whose) PUNCTUAL_NOEXCEPT;

/*
 * *to is 1 while the supervisor runs. Once it does not, nobody releases the task or writes its safe
 * value: an output that is the task's then stays for ever, and its reader must act by itself.
 * Real-time: reader side
 */
int punctual_watch_supervised(const punctual_watch *watch, int *to) PUNCTUAL_NOEXCEPT;

/*
 * Closes it. No other thread may use it at the time or later. A child of fork(2) closes its own copy.
 *   0  also for null: the handle is gone
 * Real-time: setup only
 */
int punctual_watch_close(punctual_watch *watch) PUNCTUAL_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* PUNCTUAL_H */
