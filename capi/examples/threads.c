/*
 * A fast loop and tasks with threads of their own for so many seconds: threads [SECONDS]
 *
 *     cc -std=c11 threads.c $(pkg-config --cflags --libs punctual) -o threads
 *
 * A servo at 1 kHz preempts a planner at 20 Hz that computes for some 20 ms. A search at 10 Hz never
 * comes to its end by itself: it is told at its next release, and returns with the best it has. A
 * sensor is triggered by its device, and what is left of the time goes to background work. As root:
 * without the right to SCHED_FIFO nobody preempts by priority.
 */
#include <stdio.h>
#include <stdlib.h>

#include <punctual.h>

static punctual_executive *executive;

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
    int stopped = 0;

    *next_ns = (*next_ns != 0 ? *next_ns : punctual_now_ns()) + 10100000;
    while (punctual_wait_until_ns(*next_ns, 0) != 0)
        continue;
    punctual_executive_stopped(executive, &stopped);
    return !stopped;
}

static int sensor(void *data, const punctual_cycle *cycle)
{
    (void)cycle;
    *(double *)data += 1.0;
    return PUNCTUAL_CONTINUE;
}

static int background(void *data)
{
    ++*(unsigned *)data;
    return PUNCTUAL_CONTINUE;
}

static int add(const char *name, punctual_task_fn run, double *data, uint64_t period_ns)
{
    static uint64_t next_ns;
    punctual_task task;

    punctual_task_init(&task, sizeof task);
    task.name = name;
    task.run = run;
    task.data = data;
    task.period_num_ns = period_ns;
    if (run != servo)
        task.place = PUNCTUAL_PLACE_THREAD;
    if (run == search)
        task.on_overrun = PUNCTUAL_OVERRUN_TERMINATE;
    if (run == sensor) {
        task.wait = sensor_ready;
        task.trigger_data = &next_ns;
    }
    return punctual_executive_add(executive, &task, NULL);
}

int main(int argc, char **argv)
{
    uint64_t seconds = argc > 1 ? strtoull(argv[1], NULL, 10) : 10;
    double position = 0.0, plan = 0.0, best = 0.0, read = 0.0;
    unsigned slices = 0;
    char summary[1024] = "";

    if (punctual_executive_create(&executive) == 0 &&
        add("servo", servo, &position, 1000000) == 0 &&
        add("planner", planner, &plan, 50000000) == 0 &&
        add("search", search, &best, 100000000) == 0 &&
        add("sensor", sensor, &read, 10000000) == 0 &&
        punctual_executive_idle(executive, 20000, background, &slices) == 0 &&
        punctual_executive_run(executive, NULL, seconds * 1000000000) == 0)
        punctual_executive_summary(executive, summary, sizeof summary);
    printf("%s\n", summary[0] != 0 ? summary : punctual_last_error());
    punctual_executive_destroy(executive);
    return summary[0] != 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
