/*
 * A calendar for so many seconds: calendar [SECONDS]
 *
 *     cc -std=c11 calendar.c $(pkg-config --cflags --libs punctual) -o calendar
 *
 * In a frame of a millisecond read, control and write keep their places. A filter of two units
 * breaks off at the end of each and is done after three of them, one and a half frames. A log of
 * 70 Hz runs where its budget fits before the next unit.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <punctual.h>

/* Some 20 us of work. */
static int work(void *data, const punctual_cycle *cycle)
{
    double *sum = data;

    (void)cycle;
    for (int k = 0; k < 5000; k++)
        *sum = 0.5 * *sum + k;
    return PUNCTUAL_CONTINUE;
}

/* Its part says where it left off. */
static int filter(void *data, const punctual_cycle *cycle)
{
    work(data, cycle);
    return cycle->part < 2 ? PUNCTUAL_BREAK : PUNCTUAL_CONTINUE;
}

/* Each unit comes 40 us behind the one before. */
static const struct {
    const char *name, *of, *after;
    punctual_task_fn run;
} units[] = {
    {"read", "read", NULL, work},
    {"control", "control", "read", work},
    {"filter 1", "filter", "control", filter},
    {"write", "write", "filter 1", work},
    {"filter 2", "filter", "write", NULL}, /* the body of a task is given once */
};

enum { UNITS = sizeof units / sizeof units[0] };

static int add(punctual_executive *executive, double *sums)
{
    punctual_unit unit;
    punctual_task log;
    int error = punctual_executive_frame(executive, 1000000, 1);

    for (size_t i = 0; i < UNITS && error == 0; i++) {
        punctual_unit_init(&unit, sizeof unit);
        unit.name = units[i].name;
        unit.of = units[i].of;
        unit.after = units[i].after;
        unit.run = units[i].run;
        unit.data = &sums[i];
        unit.gap_ns = 40000;
        unit.budget_ns = 60000;
        unit.deadline_ns = 150000;
        error = punctual_executive_add_unit(executive, &unit, NULL);
    }
    punctual_task_init(&log, sizeof log);
    log.name = "log";
    log.run = work;
    log.data = &sums[UNITS];
    log.period_num_ns = 1000000000;
    log.period_den = 70;
    log.budget_ns = 200000; /* beside units a task needs one */
    return error != 0 ? error : punctual_executive_add(executive, &log, NULL);
}

int main(int argc, char **argv)
{
    uint64_t seconds = argc > 1 ? strtoull(argv[1], NULL, 10) : 10;
    double sums[UNITS + 1] = {0.0};
    punctual_executive *executive = NULL;
    punctual_layout layout;
    char summary[1024] = "";

    if (punctual_executive_create(&executive) == 0 && add(executive, sums) == 0 &&
        punctual_executive_run(executive, NULL, seconds * 1000000000) == 0)
        punctual_executive_summary(executive, summary, sizeof summary);
    punctual_layout_init(&layout, sizeof layout);
    if (punctual_executive_task_layout(executive, 3, &layout) == 0)
        printf("write begins %" PRIu64 " ns after the start of a frame\n", layout.phase_ns);
    printf("%s\n", summary[0] != 0 ? summary : punctual_last_error());
    punctual_executive_destroy(executive);
    return summary[0] != 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
