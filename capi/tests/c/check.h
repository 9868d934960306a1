/* What the test programs share: a check that names itself, and quick options. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>

#include <punctual.h>

#define CHECK(is)                                                            \
    do {                                                                     \
        if (!(is)) {                                                         \
            fprintf(stderr, "%s:%d: not so: %s (last error: %s)\n", __FILE__, \
                    __LINE__, #is, punctual_last_error());                   \
            exit(1);                                                         \
        }                                                                    \
    } while (0)

/* Set up at once, and without rights. */
static inline punctual_options plain(uint64_t period_ns)
{
    punctual_options options;

    CHECK(punctual_options_init(&options, sizeof options) == 0);
    options.period_num_ns = period_ns;
    options.phase = PUNCTUAL_PHASE_ZERO;
    options.wait = PUNCTUAL_WAIT_SLEEP;
    options.priority = 0;
    options.watchdog_ns = UINT64_MAX; /* under valgrind, or stopped, all takes long */
    options.lock_memory = 0;
    options.hold_idle_states = 0;
    return options;
}

#endif
