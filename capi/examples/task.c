/*
 * A task of a supervisor, which starts this program and releases it on its grid:
 *
 *     cc -std=c11 task.c $(pkg-config --cflags --libs punctual) -o task
 *
 * Gives out how long it has been running, in seconds. Started by hand it says so and ends.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <punctual.h>

int main(void)
{
    punctual_process *process;
    punctual_cycle cycle;
    double seconds = 0.0;
    int error = punctual_register(&process, NULL);

    if (error != 0) {
        fprintf(stderr, "%s\n", punctual_last_error());
        return EXIT_FAILURE;
    }
    punctual_cycle_init(&cycle, sizeof cycle);
    while ((error = punctual_wait(process, &cycle)) == 0) {
        seconds += (double)cycle.dt_ns / 1e9; /* the work: read, compute, give out */
        punctual_commit(process, &seconds, sizeof seconds);
    }
    if (error != -ECANCELED)
        fprintf(stderr, "%s\n", punctual_strerror(error));
    punctual_unregister(process);
    return error == -ECANCELED ? EXIT_SUCCESS : EXIT_FAILURE;
}
