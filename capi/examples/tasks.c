/*
 * Three rates in one loop, each with what an overrun of it does: tasks [SECONDS]
 *
 *     cc -std=c11 tasks.c $(pkg-config --cflags --libs punctual) -o tasks
 */
#include <stdio.h>
#include <stdlib.h>
#include <punctual.h>

static int servo(void *data, const punctual_cycle *cycle)
{
    *(double *)data += 0.25 * (double)cycle->dt_ns / 1e9;
    return PUNCTUAL_CONTINUE;
}

static int plan(void *data, const punctual_cycle *cycle)
{
    for (int step = 0; step < 200000 && !punctual_cycle_cancelled(); step++)
        *(double *)data = 0.5 * *(double *)data + (double)cycle->n; /* the best so far is kept */
    return PUNCTUAL_CONTINUE;
}

static int display(void *data, const punctual_cycle *cycle)
{
    *(double *)data += (double)cycle->dt_ns; /* printing is no task of a real-time thread */
    return PUNCTUAL_CONTINUE;
}

static int add(punctual_executive *executive, const char *name, punctual_task_fn run, void *data,
               uint64_t num_ns, uint64_t den, int on_overrun)
{
    punctual_task task;

    punctual_task_init(&task, sizeof task);
    task.name = name;
    task.run = run;
    task.data = data;
    task.period_num_ns = num_ns;
    task.period_den = den;
    task.on_overrun = on_overrun;
    task.burst = on_overrun == PUNCTUAL_OVERRUN_BURST ? 3 : 0;
    return punctual_executive_add(executive, &task, NULL);
}

int main(int argc, char **argv)
{
    uint64_t seconds = argc > 1 ? strtoull(argv[1], NULL, 10) : 10;
    double position = 0.0, target = 0.0, shown = 0.0;
    punctual_executive *executive;
    char summary[1024] = "";
    if (punctual_executive_create(&executive) == 0 &&
        add(executive, "servo", servo, &position, 1000000, 1, PUNCTUAL_OVERRUN_SKIP) == 0 &&
        add(executive, "plan", plan, &target, 20000000, 1, PUNCTUAL_OVERRUN_TERMINATE) == 0 &&
        add(executive, "display", display, &shown, 1000000000, 3, PUNCTUAL_OVERRUN_BURST) == 0 &&
        punctual_executive_run(executive, NULL, seconds * 1000000000) == 0)
        punctual_executive_summary(executive, summary, sizeof summary);
    printf("%s\nat %.3f\n", summary[0] != 0 ? summary : punctual_last_error(), position);
    punctual_executive_destroy(executive);
    return summary[0] != 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
