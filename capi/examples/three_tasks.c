/*
 * An executive of three tasks for so many seconds: three_tasks [SECONDS]
 *
 *     cc -std=c11 three_tasks.c $(pkg-config --cflags --libs punctual) -o three_tasks
 *
 * A servo at 1 kHz, its logger half a millisecond behind it, and a display at 3 Hz, which is no
 * whole number of nanoseconds.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <punctual.h>

struct servo {
    double position;
    uint64_t missed;
};

static int servo(void *data, const punctual_cycle *cycle)
{
    struct servo *state = data;

    state->position += (double)cycle->dt_ns / 1e9;
    state->missed += cycle->missed;
    return 0;
}

static int logger(void *data, const punctual_cycle *cycle)
{
    (void)cycle;
    *(double *)data += 1.0;
    return 0;
}

static int display(void *data, const punctual_cycle *cycle)
{
    (void)cycle;
    ++*(unsigned *)data; /* printing is no task of a real-time thread */
    return 0;
}

static int add(punctual_periodic *periodic, const char *name, punctual_task_fn run, void *data,
               uint64_t num_ns, uint64_t den)
{
    punctual_task task;

    punctual_task_init(&task, sizeof task);
    task.name = name;
    task.run = run;
    task.data = data;
    task.period_num_ns = num_ns;
    task.period_den = den;
    if (run == logger) {
        task.phase = PUNCTUAL_PHASE_AFTER;
        task.after = "servo";
        task.phase_ns = 500000;
    }
    return punctual_periodic_add(periodic, &task, NULL);
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"servo", "logger", "display"};
    uint64_t seconds = argc > 1 ? strtoull(argv[1], NULL, 10) : 10;
    struct servo state = {0.0, 0};
    double logged = 0.0;
    unsigned shown = 0;
    punctual_periodic *periodic;
    int error = punctual_periodic_create(&periodic);

    if (error == 0)
        error = add(periodic, names[0], servo, &state, 1000000, 1);
    if (error == 0)
        error = add(periodic, names[1], logger, &logged, 1000000, 1);
    if (error == 0)
        error = add(periodic, names[2], display, &shown, 1000000000, 3);
    if (error == 0)
        error = punctual_periodic_build(periodic);
    if (error == 0)
        error = punctual_periodic_run(periodic, NULL, seconds * 1000000000);
    if (error != 0) {
        fprintf(stderr, "%s: %s\n", punctual_strerror(error), punctual_last_error());
        punctual_periodic_destroy(periodic);
        return EXIT_FAILURE;
    }
    for (uint32_t task = 0; task < 3; task++) {
        punctual_stats stats;
        punctual_stats_init(&stats, sizeof stats);
        if (punctual_periodic_task_stats(periodic, task, &stats) == 0)
            printf("%s: %" PRIu64 " cycles, %" PRIu64 " missed, late by at most %" PRId64 " ns\n",
                   names[task], stats.ran, stats.missed, stats.max_ns);
    }
    punctual_periodic_destroy(periodic);
    return EXIT_SUCCESS;
}
