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
static double sum;

static int work(void *data, const punctual_cycle *cycle)
{
    (void)cycle;
    for (int k = 0; k < 5000; k++)
        sum = 0.5 * sum + k;
    ++*(unsigned *)data;
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
    const char *name, *task, *after;
    punctual_task_fn run;
} units[] = {
    {"read", "read", NULL, work},
    {"control", "control", "read", work},
    {"filter 1", "filter", "control", filter},
    {"write", "write", "filter 1", work},
    {"filter 2", "filter", "write", filter},
};

enum { UNITS = sizeof units / sizeof units[0] };

static int add_units(punctual_calendar *calendar, unsigned *ran)
{
    int error = 0;

    for (size_t i = 0; i < UNITS && error == 0; i++) {
        punctual_unit unit;
        punctual_unit_init(&unit, sizeof unit);
        unit.name = units[i].name;
        unit.task = units[i].task;
        unit.after = units[i].after;
        unit.run = units[i].run;
        unit.data = &ran[units[i].run == filter ? 2 : i]; /* the filter's two units are one task */
        unit.ready_ns = units[i].after == NULL ? 0 : 40000;
        unit.budget_ns = 60000;
        unit.deadline_ns = 150000;
        error = punctual_calendar_add(calendar, &unit, NULL);
    }
    return error != 0 ? error : punctual_calendar_build(calendar);
}

static int add_log(punctual_periodic *periodic, unsigned *logged)
{
    punctual_task task;
    int error;

    punctual_task_init(&task, sizeof task);
    task.name = "log";
    task.run = work;
    task.data = logged;
    task.period_num_ns = 1000000000;
    task.period_den = 70;
    task.budget_ns = 200000; /* beside a calendar a task needs one */
    error = punctual_periodic_add(periodic, &task, NULL);
    return error != 0 ? error : punctual_periodic_build(periodic);
}

static void report(const punctual_calendar *calendar, const punctual_periodic *periodic)
{
    punctual_stats stats;

    for (uint32_t i = 0; i < UNITS - 1; i++) {
        punctual_unit_counts counts;
        punctual_unit_counts_init(&counts, sizeof counts);
        punctual_stats_init(&stats, sizeof stats);
        if (punctual_calendar_task_counts(calendar, i, &counts) == 0 &&
            punctual_calendar_task_stats(calendar, i, &stats) == 0)
            printf("%s: %" PRIu64 " units, %" PRIu64 " missed, %" PRIu64
                   " breaks, late by at most %" PRId64 " ns\n",
                   units[i].task, counts.ran, counts.missed, counts.breaks, stats.max_ns);
    }
    punctual_stats_init(&stats, sizeof stats);
    if (punctual_periodic_task_stats(periodic, 0, &stats) == 0)
        printf("log: %" PRIu64 " cycles, %" PRIu64 " missed, late by at most %" PRId64 " ns\n",
               stats.ran, stats.missed, stats.max_ns);
}

int main(int argc, char **argv)
{
    uint64_t seconds = argc > 1 ? strtoull(argv[1], NULL, 10) : 10;
    unsigned ran[UNITS] = {0}, logged = 0;
    punctual_calendar *calendar = NULL;
    punctual_periodic *periodic = NULL;
    int error = punctual_calendar_create(&calendar, 1000000);

    if (error == 0)
        error = punctual_periodic_create(&periodic);
    if (error == 0)
        error = add_units(calendar, ran);
    if (error == 0)
        error = add_log(periodic, &logged);
    if (error == 0)
        error = punctual_calendar_run(calendar, periodic, NULL, seconds * 1000000000);
    if (error == 0)
        report(calendar, periodic);
    else
        fprintf(stderr, "%s: %s\n", punctual_strerror(error), punctual_last_error());
    punctual_calendar_destroy(calendar);
    punctual_periodic_destroy(periodic);
    return error == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
