/*
 * punctual.h: be there at the release, know every cycle.
 *
 * A loop of one period that says punctual_loop_wait(), works, and says so again; an executive of
 * many periodic tasks in one thread; a calendar of units at fixed places of a frame; workers, which
 * are tasks with a thread each; a process that is a supervisor's task, and a look at such a task;
 * the clock, and a wait for one instant. Linux, x86-64 and AArch64. C11 and C++17 and newer; a
 * small C++ wrapper is in punctual.hpp.
 *
 * Answers. A function that can fail returns 0 or a negative errno, never anything else.
 *   punctual_strerror() says what a number means here, punctual_last_error() says it of the last
 *   failure with names and numbers. Common to all:
 *     -EINVAL           a null pointer or an argument that cannot be
 *     -E2BIG            a struct of a newer version that asks for what this library does not know
 *     -ENOTRECOVERABLE  a fault of the library's own, caught at its border: destroy the object
 *   Nothing here ends the process, throws, prints (but a fault of its own, on standard error) or
 *   installs a signal handler.
 *
 * Time. All instants are nanoseconds on CLOCK_MONOTONIC, all spans nanoseconds; shares are from 0
 *   to 1. A period is an exact fraction of nanoseconds, num/den: 1 kHz is 1000000/1, 3 Hz is
 *   1000000000/3. It is from 1 ns to 2^62 ns (146 years).
 *
 * Real time. Each function says where it may be called:
 *     setup only       allocates, takes time, makes system calls: before or after a loop
 *     in loop          allocates nothing, makes no system call, is done in well under a microsecond
 *     in loop, waits   the same, and its own sleep
 *     reader side      from any thread at any time, disturbs no loop; may allocate
 *
 * Threads. Where nothing else is said, an object is used by one thread at a time.
 *
 * Structs that cross the border begin with their size and are filled in by their _init function,
 *   which is given sizeof: so each side may be of another version than the other.
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
 * The calling thread's last failure in words: what was asked, and which task, period or CPU it is
 * about. Empty before the first one, and where punctual_strerror() says all there is, as of what a
 * loop calls, which must not allocate. Valid until the thread's next call of this library that
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
                            at the start: what runs beyond this is an overrun */
    uint64_t part;       /* how often the task broke this cycle off before: it goes on where it
                            was. Of a calendar; 0 elsewhere */
} punctual_cycle;

/* What a loop or a task did so far. */
typedef struct punctual_stats {
    size_t size;               /* sizeof(punctual_stats) */
    uint64_t ran;              /* cycles */
    uint64_t missed;           /* releases that never ran, as far as a later cycle told of them */
    uint64_t started_late;     /* later than the task's start_ns: of a task only */
    uint64_t over_budget;      /* ran longer than the task's budget_ns: of a task only */
    uint64_t over_release;     /* still running at the next release: overruns */
    uint64_t over_deadline;    /* finished after the task's deadline_ns: of a task only */
    uint64_t last_release_ns;  /* the release of the last cycle */
    uint64_t last_cycle;       /* and its n */
    int64_t min_ns;            /* lateness: the smallest, the largest, the mean; 0 with ran = 0 */
    int64_t max_ns;
    double mean_ns;
    uint64_t stalls;           /* gaps above 1 us inside spins, when the CPU was elsewhere: of a */
    uint64_t longest_stall_ns; /*   loop only */
    uint64_t stalled_ns;       /* all of them together */
    uint32_t consistent;       /* whether all but the stalls is of one moment */
    uint32_t forced;           /* 0, or how the watchdog ended the loop: 1 its thread was made
                                  SCHED_OTHER, 2 that was refused, 3 it did not get the CPU */
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

/* ---- How a thread runs and waits ------------------------------------------------------------- */

/* Where releases lie on CLOCK_MONOTONIC. */
enum {
    PUNCTUAL_PHASE_DEFAULT = 0, /* of a loop quiet, of an executive zero */
    PUNCTUAL_PHASE_QUIET = 1,   /* away from the kernel's tick, which is listened for; zero where
                                   none is heard, or the period meets it at any phase. A loop's */
    PUNCTUAL_PHASE_ZERO = 2,    /* multiples of the period: separate processes agree on them */
    PUNCTUAL_PHASE_AT = 3       /* phase_ns after those */
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
    uint64_t watchdog_ns;      /* stop a loop that gets nowhere for so long, and make its thread
                                  SCHED_OTHER: at least two periods; 0: no watchdog. It is a thread of
                                  this process, and ends with it, as the loop does */
    double budget_share;       /* for PUNCTUAL_WAIT_ADAPTIVE: the share of the CPU that waiting may
                                  take, above 0 and at most 1; 0.1 */
    double late_share;         /* and the share of wakes that may be late, in (0, 1); 0.001 */
    int32_t phase;             /* a PUNCTUAL_PHASE_ */
    int32_t wait;              /* a PUNCTUAL_WAIT_ */
    int32_t cpu;               /* the CPU to run on; -1: any */
    int32_t priority;          /* SCHED_FIFO of 1 to 98; 0: SCHED_OTHER; 90 */
    uint32_t lock_memory;      /* 1: keep all memory of the process in RAM, by mlockall(2), while
                                  there is a loop that wants it */
    uint32_t hold_idle_states; /* 1: keep CPUs out of deep idle states meanwhile, by
                                  /dev/cpu_dma_latency: costs power */
    uint32_t rehearse;         /* 1: a wait that learns does so before the first cycle, where that
                                  takes no longer than 3 s; 0: the first cycles teach it */
    uint32_t strict;           /* 1: what the kernel refuses (priority, CPU, memory, idle states)
                                  is an error, -EACCES; 0: it is told by _refused(), and the loop
                                  runs without */
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
    uint32_t corrected;      /* 1: spins end by a computed delay, not at the next look */
    uint32_t quiet;          /* 1: a quiet phase was found */
    uint32_t learns;         /* 1: the wait is adaptive */
    uint32_t calibrating;    /* 1: it is still trying each approach in turn */
    uint32_t reachable;      /* 1: late_share is within the budget on this machine, as far as known */
    uint32_t extrapolated;   /* 1: the margin rests on more than was seen so far */
} punctual_wait_info;

/*
 * Empties it: punctual_wait_info_init(&info, sizeof info).
 * Real-time: in loop
 */
int punctual_wait_info_init(punctual_wait_info *info, size_t size) PUNCTUAL_NOEXCEPT;

/* ---- A loop of one period -------------------------------------------------------------------- */

/*
 * A loop. It belongs to the thread that created it, which alone waits and destroys; a cycle that
 * runs over its next release makes that one missed, and the phase stays.
 */
typedef struct punctual_loop punctual_loop;

/*
 * Makes the calling thread a loop's: CPU, policy, memory, clock (50 ms), quiet phase (300 ms), and
 * what the wait takes to learn (3 s at most). *loop is null where it fails.
 *   -EINVAL  an option that cannot be; punctual_last_error() names it
 *   -EACCES  the kernel refused something, and the options are strict
 *   -EAGAIN  no thread for the watchdog
 * Real-time: setup only
 */
int punctual_loop_create(punctual_loop **loop, const punctual_options *options) PUNCTUAL_NOEXCEPT;

/*
 * Waits for the next release to come and fills in its cycle, which may be null. The first call
 * fixes which release is the first, one that is still to come.
 *   -ECANCELED  the loop was told to stop
 *   -ETIMEDOUT  the watchdog stopped it
 *   -EPERM      this is not the thread that created it
 *   -EBUSY      called from a signal handler that interrupted it
 *   -EINVAL     also a cycle whose size was never set: nothing was waited for
 * Real-time: in loop, waits
 */
int punctual_loop_wait(punctual_loop *loop, punctual_cycle *cycle) PUNCTUAL_NOEXCEPT;

/*
 * Tells the loop to stop, for good: from any thread, and from a signal handler. A loop that spins
 * hears of it at once, one that sleeps at its next wake.
 * Real-time: in loop
 */
int punctual_loop_stop(punctual_loop *loop) PUNCTUAL_NOEXCEPT;

/*
 * What the loop did so far, from any thread. A cycle is counted once it is over: at the beginning of
 * the next wait, or when the loop's own thread asks for this or is told to stop.
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

/*
 * What the kernel refused, as "SCHED_FIFO 90: EPERM; lock memory: ENOMEM"; empty when nothing. Cut
 * to size bytes, the closing zero included; from any thread.
 *   -ERANGE  it was cut
 * Real-time: reader side
 */
int punctual_loop_refused(const punctual_loop *loop, char *text, size_t size) PUNCTUAL_NOEXCEPT;

/*
 * Ends the loop and puts back what was changed of its thread and process. Null is no error. No
 * other thread may use it at the time or later.
 *   -EPERM  this is not the thread that created it
 * Real-time: setup only
 */
int punctual_loop_destroy(punctual_loop *loop) PUNCTUAL_NOEXCEPT;

/* ---- An executive of many periodic tasks ----------------------------------------------------- */

/*
 * Tasks of any periods in one thread, each run to its end, the most urgent of those that are due
 * first. Add tasks, build, run; more tasks may come and others go at any time after that, also
 * while it runs.
 */
typedef struct punctual_periodic punctual_periodic;

/*
 * The body of a task: is called once a cycle, by the thread that runs the executive (of workers by
 * the task's own), with the data of its punctual_task. The cycle is valid for the call. Returns a
 * PUNCTUAL_ of those below, or a negative number, which ends the run and is what that returns. It
 * must neither throw nor longjmp out. A task that takes long asks punctual_cycle_cancelled(), or
 * looks whether punctual_now_ns() has passed cycle->next_ns, and returns with its outputs in a safe
 * state.
 */
typedef int (*punctual_task_fn)(void *data, const punctual_cycle *cycle);

/* What a body says at its end; any other positive number is as PUNCTUAL_STOP. */
enum {
    PUNCTUAL_CONTINUE = 0, /* this cycle is done */
    PUNCTUAL_STOP = 1,     /* end the run, which returns 0 */
    PUNCTUAL_BREAK = 2     /* a voluntary break: this cycle goes on in the task's next unit of the
                              calendar; elsewhere as PUNCTUAL_CONTINUE */
};

/*
 * Whether the cycle that the calling thread runs is to come to its end: 1 when its release has been
 * overrun (of a unit of a calendar: its budget), or the run of workers is to end, and its task has
 * PUNCTUAL_POLICY_TERMINATE. 0 before that, for any other task, and where the thread runs no cycle.
 * A run of an executive or a calendar with such a task has a thread beside it, on another CPU where
 * there is one, that looks every 2 ms; without another CPU, and without the right to a priority
 * above the task's, it may come late. Cannot fail.
 * Real-time: in loop
 */
int punctual_cycle_cancelled(void) PUNCTUAL_NOEXCEPT;

/* Where a task's releases lie within its period; PUNCTUAL_PHASE_AT is phase_ns after the epoch. */
enum {
    PUNCTUAL_PHASE_BALANCED = 0, /* where it meets the fewest others */
    PUNCTUAL_PHASE_AFTER = 4     /* phase_ns after the release of the task named in `after`, which
                                    has the same period */
};

/* What happens to a task that is still waiting or running at its next release. */
enum {
    PUNCTUAL_POLICY_SKIP = 0,      /* releases that passed are missed and counted; the phase stays */
    PUNCTUAL_POLICY_BURST = 1,     /* up to `burst` of them run one after the other */
    PUNCTUAL_POLICY_DELAY = 2,     /* the next release is a period after the finish; the phase moves */
    PUNCTUAL_POLICY_TERMINATE = 3, /* as SKIP, and the task is told by punctual_cycle_cancelled():
                                      it ends when it returns */
    PUNCTUAL_POLICY_STOP = 4       /* the run ends with -ETIME */
};

/* A task. */
typedef struct punctual_task {
    size_t size;            /* sizeof(punctual_task) */
    const char *name;       /* of its own, UTF-8, copied; without default */
    punctual_task_fn run;   /* its body; without default */
    void *data;             /* handed to the body; null */
    const char *after;      /* for PUNCTUAL_PHASE_AFTER: a task's name, copied */
    uint64_t period_num_ns; /* the period is num/den ns; without default */
    uint64_t period_den;    /* 1 */
    uint64_t phase_ns;      /* for PUNCTUAL_PHASE_AT and PUNCTUAL_PHASE_AFTER: below the period */
    uint64_t budget_ns;     /* its longest execution, at most the period; 0: none said */
    uint64_t deadline_ns;   /* from release to the latest finish; 0: the period */
    uint64_t start_ns;      /* from release to the latest start that is not late; 0: any */
    int32_t phase;          /* PUNCTUAL_PHASE_BALANCED, _AT or _AFTER */
    int32_t priority;       /* 1 to 99, the higher first; 0 for all tasks: rate-monotonic */
    int32_t policy;         /* a PUNCTUAL_POLICY_ */
    uint32_t burst;         /* for PUNCTUAL_POLICY_BURST: at least 1 */
} punctual_task;

/*
 * Fills in the defaults: punctual_task_init(&task, sizeof task).
 * Real-time: setup only
 */
int punctual_task_init(punctual_task *task, size_t size) PUNCTUAL_NOEXCEPT;

/*
 * An executive without tasks. *periodic is null where it fails.
 * Real-time: setup only
 */
int punctual_periodic_create(punctual_periodic **periodic) PUNCTUAL_NOEXCEPT;

/*
 * One more task, with 34 KiB for its counts and its histogram of lateness; *index, which may be
 * null, numbers it from 0 in the order of adding, never anew. What tasks cannot be together, build
 * says; after that, this does, as build would, and nothing is added then.
 *
 * While it runs, for any thread but its own: the loop takes the new task at its first moment with
 * enough time in hand, within some 100 ms of its beginning and of this call, or once the task that
 * runs then has returned; and so does this. The task begins at its first release after that. The
 * others keep their phases to the nanosecond and lose no release; ranks are counted anew.
 *   -EINVAL   what cannot be of the task itself; while it runs also one that does not go with the
 *             options of the run
 *   -EDEADLK  called by a task of the executive that runs
 *   -EBUSY    in use by another call, or it runs beside a calendar
 *   -EAGAIN   no thread for cancelling
 *   or, once it is built, what punctual_periodic_build() says
 * Real-time: setup only
 */
int punctual_periodic_add(punctual_periodic *periodic, const punctual_task *task,
                          uint32_t *index) PUNCTUAL_NOEXCEPT;

/*
 * Takes a task away, for good; while it runs as punctual_periodic_add() adds one: once this has
 * returned, its body is not called any more, also where it was due. The last one may go as well
 * where there is no watchdog; a run without tasks waits for one.
 *   -ENOENT   no task of this index
 *   -EINVAL   what is left does not go with the options of the run
 *   -EDEADLK  called by a task of the executive that runs
 *   -EBUSY    in use by another call, or it runs beside a calendar
 *   or, once it is built, what punctual_periodic_build() says of the others
 * Real-time: setup only
 */
int punctual_periodic_remove(punctual_periodic *periodic, uint32_t task) PUNCTUAL_NOEXCEPT;

/*
 * Lets the budgets ask for more than the whole CPU: releases will be missed.
 *   -EBUSY  built already, or in use by another call
 * Real-time: setup only
 */
int punctual_periodic_allow_overload(punctual_periodic *periodic) PUNCTUAL_NOEXCEPT;

/*
 * Checks all tasks and lays them out: ranks and balanced phases. punctual_last_error() names the
 * tasks that a failure is about.
 *   -EINVAL  budgets, deadlines, phases or priorities that cannot be, or no tasks
 *   -EEXIST  two tasks of one name
 *   -ENOENT  a task after one that is not there
 *   -ENOSPC  the budgets add up to more than the whole CPU
 *   -E2BIG   more tasks than ranks
 *   -EBUSY   built already, or in use by another call
 * Real-time: setup only
 */
int punctual_periodic_build(punctual_periodic *periodic) PUNCTUAL_NOEXCEPT;

/*
 * The most releases that fall on one instant, or an upper bound of it.
 *   -EINVAL  also: not built yet
 * Real-time: reader side
 */
int punctual_periodic_peak(const punctual_periodic *periodic, uint64_t *to) PUNCTUAL_NOEXCEPT;

/*
 * The place of a task in the order of urgency; 0 is the most urgent.
 *   -EINVAL  also: not built yet
 *   -ENOENT  no task of this index
 * Real-time: reader side
 */
int punctual_periodic_task_rank(const punctual_periodic *periodic, uint32_t task,
                                uint32_t *to) PUNCTUAL_NOEXCEPT;

/*
 * The phase of a task, ns after the epoch.
 *   -EINVAL  also: not built yet
 *   -ENOENT  no task of this index
 * Real-time: reader side
 */
int punctual_periodic_task_phase_ns(const punctual_periodic *periodic, uint32_t task,
                                    uint64_t *to_ns) PUNCTUAL_NOEXCEPT;

/*
 * Runs the tasks in the calling thread, for duration_ns (0: without end), until it is told to stop,
 * or until a task says so. options, which may be null for the defaults, says how the thread runs
 * and waits; period_num_ns stays 0, and the phase is that of the epoch of all tasks: zero, or
 * phase_ns after the clock's zero. Everything is counted anew. Returns 0 at the end of the
 * duration, when told to stop, and when a task returned a positive number; otherwise
 *   what a task returned, if that is negative
 *   -ETIME      a task overran whose policy is to stop; punctual_last_error() names it
 *   -ETIMEDOUT  the watchdog stopped it
 *   -EINVAL     an option that cannot be, not built yet, or no tasks
 *   -EACCES     the kernel refused something, and the options are strict
 *   -EAGAIN     no thread for the watchdog, or for cancelling
 *   -EBUSY      it runs already
 * Real-time: setup only
 */
int punctual_periodic_run(punctual_periodic *periodic, const punctual_options *options,
                          uint64_t duration_ns) PUNCTUAL_NOEXCEPT;

/*
 * Tells the executive to stop, for good: from any thread, from a task, and from a signal handler.
 * Takes effect after the task that runs; where all wait, as with a loop.
 * Real-time: in loop
 */
int punctual_periodic_stop(punctual_periodic *periodic) PUNCTUAL_NOEXCEPT;

/*
 * What a task did in the present run, or in the last; from any thread.
 *   -EINVAL  also: not built yet
 *   -ENOENT  no task of this index
 * Real-time: reader side
 */
int punctual_periodic_task_stats(const punctual_periodic *periodic, uint32_t task,
                                 punctual_stats *stats) PUNCTUAL_NOEXCEPT;

/*
 * A quantile of a task's lateness, as punctual_loop_quantile_ns(); from any thread.
 *   -EINVAL   a share outside [0, 1], or not built yet
 *   -ENOENT   no task of this index
 *   -ENODATA  no cycle ran yet
 * Real-time: reader side
 */
int punctual_periodic_task_quantile_ns(const punctual_periodic *periodic, uint32_t task,
                                       double share, int64_t *to_ns) PUNCTUAL_NOEXCEPT;

/*
 * How releases were approached at the end of the last run.
 *   -ENODATA  none has ended yet
 *   -EBUSY    it runs
 * Real-time: setup only
 */
int punctual_periodic_wait_info(const punctual_periodic *periodic,
                                punctual_wait_info *info) PUNCTUAL_NOEXCEPT;

/*
 * What the kernel refused the last run, as punctual_loop_refused().
 *   -ERANGE  it was cut
 *   -EBUSY   it runs
 * Real-time: setup only
 */
int punctual_periodic_refused(const punctual_periodic *periodic, char *text,
                              size_t size) PUNCTUAL_NOEXCEPT;

/*
 * Frees it. Null is no error. No other thread may use it at the time or later.
 *   -EBUSY  it runs, or is in use by another call
 * Real-time: setup only
 */
int punctual_periodic_destroy(punctual_periodic *periodic) PUNCTUAL_NOEXCEPT;

/* ---- Units at fixed places of a frame: a calendar --------------------------------------------- */

/*
 * A frame that comes round for ever, and in it units, each of which has a place that no other
 * overlaps: for whoever knows at which instant each piece of work has to begin. A task has one
 * cycle a frame, and in it one unit or several: with PUNCTUAL_BREAK it breaks off at the end of one
 * and goes on in the next, be it in the next frame; one that is done early hands the rest back. A
 * unit that runs longer than its budget is timed out: it is counted, and told by
 * punctual_cycle_cancelled() where its policy is to be terminated; what comes next starts late.
 * Add units, build, run, all in one thread; between the units may run the tasks of an executive.
 */
typedef struct punctual_calendar punctual_calendar;

/* A unit. */
typedef struct punctual_unit {
    size_t size;          /* sizeof(punctual_unit) */
    const char *name;     /* of its own, UTF-8, copied; without default */
    const char *task;     /* the task whose unit it is, copied; null: one of the unit's name */
    punctual_task_fn run; /* the body of its task, given with one of its units at least; null: as
                             there. cycle->next_ns is when the unit's budget is spent */
    void *data;           /* handed to the body; null */
    const char *after;    /* the unit behind whose place its own comes, copied; null: the frame's
                             start */
    uint64_t ready_ns;    /* from there to the start of its place; 0 */
    uint64_t budget_ns;   /* its longest execution, which is the length of its place; without
                             default */
    uint64_t deadline_ns; /* from the start of its place to its latest finish: from the budget to
                             the frame; 0: the budget. One that could not start by then is missed */
    uint64_t start_ns;    /* from the start of its place to its latest start that is not late; 0:
                             any */
    int32_t policy;       /* what a time-out does: PUNCTUAL_POLICY_SKIP, _TERMINATE or _STOP; units
                             of one task that say another than SKIP say the same */
    uint32_t reserved;    /* 0 */
} punctual_unit;

/* What the units of a task did, beside its punctual_stats. */
typedef struct punctual_unit_counts {
    size_t size;            /* sizeof(punctual_unit_counts) */
    uint64_t ran;           /* units */
    uint64_t missed;        /* units whose deadline had passed before they could start */
    uint64_t spare;         /* units handed back: the task was done before them */
    uint64_t breaks;        /* voluntary breaks */
    uint64_t terminated;    /* cycles that were ended before they were done */
    uint64_t missed_frames; /* frames in which the task began no cycle */
    uint64_t over_frame;    /* cycles that were not done when their task's next frame came */
} punctual_unit_counts;

/*
 * Fills in the defaults: punctual_unit_init(&unit, sizeof unit).
 * Real-time: setup only
 */
int punctual_unit_init(punctual_unit *unit, size_t size) PUNCTUAL_NOEXCEPT;

/*
 * Empties counts: punctual_unit_counts_init(&counts, sizeof counts).
 * Real-time: in loop
 */
int punctual_unit_counts_init(punctual_unit_counts *counts, size_t size) PUNCTUAL_NOEXCEPT;

/*
 * A calendar of this frame, from 1 ns to 2^62 ns, without units. *calendar is null where it fails.
 * Real-time: setup only
 */
int punctual_calendar_create(punctual_calendar **calendar, uint64_t frame_ns) PUNCTUAL_NOEXCEPT;

/*
 * One more unit; *index, which may be null, numbers it from 0 in the order of adding. What units
 * cannot be together, build says.
 *   -EINVAL  what cannot be of the unit itself
 *   -EBUSY   built already, or in use by another call
 * Real-time: setup only
 */
int punctual_calendar_add(punctual_calendar *calendar, const punctual_unit *unit,
                          uint32_t *index) PUNCTUAL_NOEXCEPT;

/*
 * Checks all units and lays them out: places, and 34 KiB a task for its counts and its histogram of
 * lateness. punctual_last_error() names the units that a failure is about, with their places.
 *   -ENOSPC  two units overlap, or one is not within the frame
 *   -EEXIST  two units of one name
 *   -ENOENT  a unit after one that is not there
 *   -EINVAL  budgets, deadlines or policies that cannot be, a task without a body or with two, a
 *            unit after itself, or no units
 *   -E2BIG   more than 65536 units
 *   -EBUSY   built already, or in use by another call
 * Real-time: setup only
 */
int punctual_calendar_build(punctual_calendar *calendar) PUNCTUAL_NOEXCEPT;

/*
 * The place of a unit, ns after the start of the frame: from its start to its end.
 *   -EINVAL  also: not built yet
 *   -ENOENT  no unit of this index
 * Real-time: reader side
 */
int punctual_calendar_place(const punctual_calendar *calendar, uint32_t unit, uint64_t *from_ns,
                            uint64_t *to_ns) PUNCTUAL_NOEXCEPT;

/*
 * The longest time between two units, from the last one to the first one of the next frame too.
 *   -EINVAL  also: not built yet
 * Real-time: reader side
 */
int punctual_calendar_longest_gap_ns(const punctual_calendar *calendar,
                                     uint64_t *to_ns) PUNCTUAL_NOEXCEPT;

/*
 * Runs the units in the calling thread, for duration_ns (0: without end), until it is told to stop,
 * or until a task says so. Between them, where that is not null, the tasks of an executive that is
 * built and does not run: each is started only where its budget fits before the next unit and 2 us,
 * so that it has to have one. options, which may be null for the defaults, says how the thread runs
 * and waits; period_num_ns stays 0, and the phase is that of the epoch, at which a frame starts:
 * zero, or phase_ns after the clock's zero. Everything is counted anew, that of the executive's
 * tasks too. Returns 0 at the end of the duration, when either is told to stop, and when a task
 * returned PUNCTUAL_STOP; otherwise
 *   what a task returned, if that is negative
 *   -ETIME      a task was timed out or missed a frame, or one of the executive overran, whose
 *               policy is to stop; punctual_last_error() names it
 *   -ETIMEDOUT  the watchdog stopped it
 *   -EINVAL     an option that cannot be, not built yet, or a task beside it without a budget
 *   -ENOSPC     the budget of a task beside it fits into no gap, or all of them ask for more than
 *               the whole CPU
 *   -EEXIST     a task of each has this name
 *   -EACCES     the kernel refused something, and the options are strict
 *   -EAGAIN     no thread for the watchdog, or for cancelling
 *   -EBUSY      it runs already, or the executive does
 * Real-time: setup only
 */
int punctual_calendar_run(punctual_calendar *calendar, punctual_periodic *beside,
                          const punctual_options *options, uint64_t duration_ns) PUNCTUAL_NOEXCEPT;

/*
 * Tells the calendar to stop, for good: from any thread, from a task, and from a signal handler.
 * Takes effect after the unit that runs; where none does, as with a loop.
 * Real-time: in loop
 */
int punctual_calendar_stop(punctual_calendar *calendar) PUNCTUAL_NOEXCEPT;

/*
 * What the task of this unit did in the present run, or in the last, counted by units; from any
 * thread.
 *   -EINVAL  also: not built yet
 *   -ENOENT  no unit of this index
 * Real-time: reader side
 */
int punctual_calendar_task_stats(const punctual_calendar *calendar, uint32_t unit,
                                 punctual_stats *stats) PUNCTUAL_NOEXCEPT;

/*
 * A quantile of the lateness of this unit's task, as punctual_loop_quantile_ns(); from any thread.
 *   -EINVAL   a share outside [0, 1], or not built yet
 *   -ENOENT   no unit of this index
 *   -ENODATA  no unit of it ran yet
 * Real-time: reader side
 */
int punctual_calendar_task_quantile_ns(const punctual_calendar *calendar, uint32_t unit,
                                       double share, int64_t *to_ns) PUNCTUAL_NOEXCEPT;

/*
 * What the units of this unit's task did in the last run.
 *   -EINVAL   also: not built yet
 *   -ENOENT   no unit of this index
 *   -ENODATA  none has ended yet
 *   -EBUSY    it runs
 * Real-time: setup only
 */
int punctual_calendar_task_counts(const punctual_calendar *calendar, uint32_t unit,
                                  punctual_unit_counts *counts) PUNCTUAL_NOEXCEPT;

/*
 * How releases were approached at the end of the last run.
 *   -ENODATA  none has ended yet
 *   -EBUSY    it runs
 * Real-time: setup only
 */
int punctual_calendar_wait_info(const punctual_calendar *calendar,
                                punctual_wait_info *info) PUNCTUAL_NOEXCEPT;

/*
 * What the kernel refused the last run, as punctual_loop_refused().
 *   -ERANGE  it was cut
 *   -EBUSY   it runs
 * Real-time: setup only
 */
int punctual_calendar_refused(const punctual_calendar *calendar, char *text,
                              size_t size) PUNCTUAL_NOEXCEPT;

/*
 * Frees it. Null is no error. No other thread may use it at the time or later.
 *   -EBUSY  it runs
 * Real-time: setup only
 */
int punctual_calendar_destroy(punctual_calendar *calendar) PUNCTUAL_NOEXCEPT;

/* ---- Workers: a thread for each task ----------------------------------------------------------- */

/*
 * Tasks that have a SCHED_FIFO thread each, released by an executive in the calling thread, so that
 * the kernel preempts the less urgent: for tasks that may take longer than the most urgent one can
 * wait. Their priorities are below the executive's, by the order of urgency. A guard above all of
 * them makes a runaway SCHED_OTHER, and it alone, until it returns. Without the right to SCHED_FIFO
 * all run as SCHED_OTHER. Add tasks, build, run.
 *
 * Each body is called by its task's own thread, bodies of different tasks at the same time. With
 * PUNCTUAL_POLICY_TERMINATE a task is told by punctual_cycle_cancelled() at the release that it
 * overran, and made SCHED_OTHER where it goes on for another grace. With PUNCTUAL_POLICY_DELAY it
 * waits for its releases itself.
 */
typedef struct punctual_workers punctual_workers;

/*
 * What paces a task: is called by its thread, with the data of its punctual_task, and blocks until
 * its next cycle, which a positive number says; 0 for none any more, or a negative number, which
 * ends the run and is what that returns. It must come back, with whatever number, once
 * punctual_workers_ending() says so, and must neither throw nor longjmp out.
 */
typedef int (*punctual_source_fn)(void *data);

/* What became of a worker, beside its punctual_stats. */
typedef struct punctual_worker_outcome {
    size_t size;       /* sizeof(punctual_worker_outcome) */
    uint64_t overran;  /* releases that found it still running an earlier cycle */
    uint64_t demoted;  /* how often the guard made it SCHED_OTHER, */
    uint64_t restored; /* and how often it got its priority back */
    int32_t priority;  /* what its thread had; 0: SCHED_OTHER */
    uint32_t reserved; /* 0 */
} punctual_worker_outcome;

/*
 * Empties an outcome: punctual_worker_outcome_init(&outcome, sizeof outcome).
 * Real-time: in loop
 */
int punctual_worker_outcome_init(punctual_worker_outcome *outcome, size_t size) PUNCTUAL_NOEXCEPT;

/*
 * Workers without tasks. *workers is null where it fails.
 * Real-time: setup only
 */
int punctual_workers_create(punctual_workers **workers) PUNCTUAL_NOEXCEPT;

/*
 * One more task, which is released; *index, which may be null, numbers it from 0 in the order of
 * adding. What tasks cannot be together, build says.
 *   -EINVAL  what cannot be of the task itself
 *   -EBUSY   built already, or in use by another call
 * Real-time: setup only
 */
int punctual_workers_add(punctual_workers *workers, const punctual_task *task,
                         uint32_t *index) PUNCTUAL_NOEXCEPT;

/*
 * One more task, which a device paces: it has no releases, so that nothing of it is late, missed
 * or to be cancelled. Its period is nominal: it sets its priority, and cycle->next_ns. Its
 * punctual_stats are of the distance of its starts in place of lateness.
 *   -EINVAL  what cannot be of the task itself, or no source
 *   -EBUSY   built already, or in use by another call
 * Real-time: setup only
 */
int punctual_workers_add_external(punctual_workers *workers, const punctual_task *task,
                                  punctual_source_fn source, uint32_t *index) PUNCTUAL_NOEXCEPT;

/*
 * Lets the budgets ask for more than a whole CPU: releases will be missed.
 *   -EBUSY  built already, or in use by another call
 * Real-time: setup only
 */
int punctual_workers_allow_overload(punctual_workers *workers) PUNCTUAL_NOEXCEPT;

/*
 * Sets the CPU of all workers; -1, which is what they begin with: any. That of the executive is in
 * its options; where both are one, it preempts them.
 *   -EINVAL  below -1
 *   -EBUSY   built already, or in use by another call
 * Real-time: setup only
 */
int punctual_workers_pin(punctual_workers *workers, int32_t cpu) PUNCTUAL_NOEXCEPT;

/*
 * Sets how long a task that is to be terminated may go on after it was told, before it is made
 * SCHED_OTHER: its period, where this is not called.
 *   -EBUSY  built already, or in use by another call
 * Real-time: setup only
 */
int punctual_workers_grace_ns(punctual_workers *workers, uint64_t ns) PUNCTUAL_NOEXCEPT;

/*
 * Checks all tasks and lays them out: balanced phases, and 34 KiB a task for its counts and its
 * histogram. punctual_last_error() names the tasks that a failure is about.
 *   -EINVAL  budgets, deadlines, phases or priorities that cannot be, or no tasks; for a task that
 *            a device paces also a policy, phase, deadline or start of its own
 *   -EEXIST  two tasks of one name
 *   -ENOENT  a task after one that is not there
 *   -ENOSPC  the budgets add up to more than a whole CPU
 *   -E2BIG   more tasks than ranks
 *   -EBUSY   built already, or in use by another call
 * Real-time: setup only
 */
int punctual_workers_build(punctual_workers *workers) PUNCTUAL_NOEXCEPT;

/*
 * The phase of a task, ns after the epoch.
 *   -EINVAL   also: not built yet
 *   -ENOENT   no task of this index
 *   -ENODATA  a device paces it
 * Real-time: reader side
 */
int punctual_workers_task_phase_ns(const punctual_workers *workers, uint32_t task,
                                   uint64_t *to_ns) PUNCTUAL_NOEXCEPT;

/*
 * Runs the tasks for duration_ns (0: without end), until they are told to stop, or until a task
 * says so. options, which may be null for the defaults, are those of the executive, which is the
 * calling thread: priority is from 2 to 98, period_num_ns and watchdog_ns stay 0 (workers have a
 * watchdog of their own), and the phase is that of the epoch. Everything is counted anew. A body
 * that never returns keeps this from returning. Returns 0 at the end of the duration, when told to
 * stop, and when a task returned PUNCTUAL_STOP; otherwise
 *   what a task or its source returned, if that is negative
 *   -ETIME      a task overran whose policy is to stop; punctual_last_error() names it
 *   -ETIMEDOUT  the watchdog stopped the executive
 *   -EINVAL     an option that cannot be, or not built yet
 *   -EAGAIN     no thread for a task, or beside them: nothing ran
 *   -EACCES     the kernel refused something, and the options are strict
 *   -EBUSY      they run already
 * Real-time: setup only
 */
int punctual_workers_run(punctual_workers *workers, const punctual_options *options,
                         uint64_t duration_ns) PUNCTUAL_NOEXCEPT;

/*
 * Tells the workers to stop, for good: from any thread, from a task, and from a signal handler.
 * Takes effect at the next release, and for each task when it returns.
 * Real-time: in loop
 */
int punctual_workers_stop(punctual_workers *workers) PUNCTUAL_NOEXCEPT;

/*
 * Whether the run is to end: 1 once it was told to, its time is over, or a task ended it, and until
 * the next run. For what paces a task.
 * Real-time: in loop
 */
int punctual_workers_ending(const punctual_workers *workers, int *to) PUNCTUAL_NOEXCEPT;

/*
 * What a task did in the present run, or in the last; from any thread.
 *   -EINVAL  also: not built yet
 *   -ENOENT  no task of this index
 * Real-time: reader side
 */
int punctual_workers_task_stats(const punctual_workers *workers, uint32_t task,
                                punctual_stats *stats) PUNCTUAL_NOEXCEPT;

/*
 * A quantile of a task's lateness, as punctual_loop_quantile_ns(); from any thread.
 *   -EINVAL   a share outside [0, 1], or not built yet
 *   -ENOENT   no task of this index
 *   -ENODATA  no cycle ran yet
 * Real-time: reader side
 */
int punctual_workers_task_quantile_ns(const punctual_workers *workers, uint32_t task, double share,
                                      int64_t *to_ns) PUNCTUAL_NOEXCEPT;

/*
 * What became of a task in the last run.
 *   -EINVAL   also: not built yet
 *   -ENOENT   no task of this index
 *   -ENODATA  none has ended yet
 *   -EBUSY    they run
 * Real-time: setup only
 */
int punctual_workers_task_outcome(const punctual_workers *workers, uint32_t task,
                                  punctual_worker_outcome *outcome) PUNCTUAL_NOEXCEPT;

/*
 * How releases were approached at the end of the last run.
 *   -ENODATA  none has ended yet
 *   -EBUSY    they run
 * Real-time: setup only
 */
int punctual_workers_wait_info(const punctual_workers *workers,
                               punctual_wait_info *info) PUNCTUAL_NOEXCEPT;

/*
 * What the kernel refused the last run, as punctual_loop_refused().
 *   -ERANGE  it was cut
 *   -EBUSY   they run
 * Real-time: setup only
 */
int punctual_workers_refused(const punctual_workers *workers, char *text,
                             size_t size) PUNCTUAL_NOEXCEPT;

/*
 * Frees them. Null is no error. No other thread may use them at the time or later.
 *   -EBUSY  they run
 * Real-time: setup only
 */
int punctual_workers_destroy(punctual_workers *workers) PUNCTUAL_NOEXCEPT;

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
 * the safe value. Frees the object; null is no error.
 *   -EPERM  this is not the thread that registered
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
 * Closes it. Null is no error. No other thread may use it at the time or later.
 * Real-time: setup only
 */
int punctual_watch_close(punctual_watch *watch) PUNCTUAL_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* PUNCTUAL_H */
