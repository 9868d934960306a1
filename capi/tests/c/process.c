/*
 * A task of a supervisor: process MODE. Counts its cycles into its output; "leaves" unregisters
 * after five.
 */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "check.h"

static void *elsewhere(void *data)
{
    punctual_process *process = (punctual_process *)data;
    int cancelled;

    CHECK(punctual_wait(process, NULL) == -EPERM);
    CHECK(punctual_cancelled(process, &cancelled) == -EPERM);
    CHECK(punctual_commit(process, &cancelled, 1) == -EPERM);
    CHECK(punctual_unregister(process) == -EPERM);
    return NULL;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "good";
    punctual_process *process, *again;
    punctual_cycle cycle;
    uint64_t ran = 0;
    pthread_t thread;
    int cancelled, error;

    CHECK(punctual_register(&process, "nobody") == -EINVAL && process == NULL);
    CHECK(punctual_register(&process, mode) == 0);
    CHECK(punctual_register(&again, NULL) == -EBUSY && again == NULL);
    CHECK(strstr(punctual_last_error(), "registered already") != NULL);
    CHECK(pthread_create(&thread, NULL, elsewhere, process) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(punctual_cycle_init(&cycle, sizeof cycle) == 0);
    while ((error = punctual_wait(process, &cycle)) == 0) {
        CHECK(cycle.next_ns > cycle.release_ns && (cycle.next_ns - cycle.release_ns) % 2000000 == 0);
        CHECK(punctual_cancelled(process, &cancelled) == 0 && cancelled == 0);
        ran++;
        CHECK(punctual_commit(process, &ran, sizeof ran) == 0);
        CHECK(punctual_commit(process, "123456789", 9) == -EMSGSIZE);
        CHECK(punctual_commit(process, NULL, 0) == -EINVAL);
        if (strcmp(mode, "leaves") == 0 && ran == 5)
            return -punctual_unregister(process);
    }
    CHECK(error == -ECANCELED && ran > 0);
    return -punctual_unregister(process);
}
