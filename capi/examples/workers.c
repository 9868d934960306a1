/*
 * Tasks with a thread each for so many seconds: workers [SECONDS]
 *
 *     cc -std=c11 workers.c $(pkg-config --cflags --libs punctual) -o workers
 *
 * A servo at 1 kHz preempts a planner at 20 Hz that computes for some 20 ms. A search at 10 Hz never
 * comes to its end by itself: it is told at its next release, and returns with the best it has. A
 * sensor is paced by its device. As root: without the right to SCHED_FIFO nobody preempts by
 * priority.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <punctual.h>

static punctual_workers *workers;

static int servo(void *data, const punctual_cycle *cycle)
{
    *(double *)data += (double)cycle->dt_ns / 1e9;
    return PUNCTUAL_CONTINUE;
}

static int planner(void *data, const punctual_cycle *cycle)
{
    uint64_t until_ns = punctual_now_ns() + 20000000;

    (void)cycle;
    while (punctual_now_ns() < until_ns)
        *(double *)data = 0.5 * *(double *)data + 1.0;
    return PUNCTUAL_CONTINUE;
}

static int search(void *data, const punctual_cycle *cycle)
{
    (void)cycle;
    while (!punctual_cycle_cancelled())
        *(double *)data += 1.0; /* one step, and the best so far is kept */
    return PUNCTUAL_CONTINUE;
}

/* Stands for a blocking read of a device that is a little slower than it says. */
static int sensor_ready(void *data)
{
    uint64_t *next_ns = data;
    int ending = 0;

    *next_ns = (*next_ns != 0 ? *next_ns : punctual_now_ns()) + 10100000;
    while (punctual_wait_until_ns(*next_ns, 0) != 0)
        continue;
    punctual_workers_ending(workers, &ending);
    return !ending;
}

static int sensor(void *data, const punctual_cycle *cycle)
{
    (void)data;
    (void)cycle;
    return PUNCTUAL_CONTINUE;
}

static int add(const char *name, punctual_task_fn run, void *data, uint64_t period_ns)
{
    punctual_task task;

    punctual_task_init(&task, sizeof task);
    task.name = name;
    task.run = run;
    task.data = data;
    task.period_num_ns = period_ns;
    if (run == search)
        task.policy = PUNCTUAL_POLICY_TERMINATE;
    if (run == sensor)
        return punctual_workers_add_external(workers, &task, sensor_ready, NULL);
    return punctual_workers_add(workers, &task, NULL);
}

static void report(uint32_t task, const char *name)
{
    punctual_worker_outcome outcome;
    punctual_stats stats;

    punctual_worker_outcome_init(&outcome, sizeof outcome);
    punctual_stats_init(&stats, sizeof stats);
    if (punctual_workers_task_stats(workers, task, &stats) != 0 ||
        punctual_workers_task_outcome(workers, task, &outcome) != 0)
        return;
    printf("%s: %" PRIu64 " cycles, %" PRIu64 " missed, overran %" PRIu64 ", priority %d\n", name,
           stats.ran, stats.missed, outcome.overran, (int)outcome.priority);
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"servo", "planner", "search", "sensor"};
    uint64_t seconds = argc > 1 ? strtoull(argv[1], NULL, 10) : 10;
    double position = 0.0, plan = 0.0, best = 0.0;
    uint64_t next_ns = 0;
    int error = punctual_workers_create(&workers);

    if (error == 0)
        error = add(names[0], servo, &position, 1000000);
    if (error == 0)
        error = add(names[1], planner, &plan, 50000000);
    if (error == 0)
        error = add(names[2], search, &best, 100000000);
    if (error == 0)
        error = add(names[3], sensor, &next_ns, 10000000);
    if (error == 0)
        error = punctual_workers_build(workers);
    if (error == 0)
        error = punctual_workers_run(workers, NULL, seconds * 1000000000);
    if (error != 0)
        fprintf(stderr, "%s: %s\n", punctual_strerror(error), punctual_last_error());
    else
        for (uint32_t task = 0; task < 4; task++)
            report(task, names[task]);
    punctual_workers_destroy(workers);
    return error == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
