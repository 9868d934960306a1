/*
 * A task that runs over its release, or a unit over its budget, is told, where its policy is to be
 * terminated, and returns: by an executive and by a calendar in one thread, and by workers.
 */
#include <errno.h>
#include <string.h>

#include "check.h"

/* Two minutes: what takes that long was told nothing. */
#define PATIENCE_NS ((uint64_t)120 * 1000000000)

struct told {
    unsigned ran;
    unsigned told;
    unsigned early; /* told before its release was over */
};

/* The first three cycles go on until they are told to come to an end; the fifth ends the run. */
static int stubborn(void *data, const punctual_cycle *cycle)
{
    struct told *told = (struct told *)data;
    uint64_t from_ns = punctual_now_ns();

    if (++told->ran > 3)
        return told->ran < 5 ? PUNCTUAL_CONTINUE : PUNCTUAL_STOP;
    while (!punctual_cycle_cancelled())
        CHECK(punctual_now_ns() - from_ns < PATIENCE_NS);
    told->told++;
    /* The two clocks may be a little apart. */
    told->early += punctual_now_ns() + 100000 < cycle->next_ns;
    return PUNCTUAL_CONTINUE;
}

/* Runs over its release too, but is to be told by nobody. */
static int untold(void *data, const punctual_cycle *cycle)
{
    struct told *told = (struct told *)data;

    while (punctual_now_ns() < cycle->next_ns + 10000000)
        told->told += (unsigned)punctual_cycle_cancelled();
    return ++told->ran < 3 ? PUNCTUAL_CONTINUE : PUNCTUAL_STOP;
}

static struct told run(punctual_task_fn body, int policy)
{
    struct told told = {0, 0, 0};
    punctual_options options = plain(0);
    punctual_periodic *periodic;
    punctual_stats stats;
    punctual_task task;

    CHECK(punctual_periodic_create(&periodic) == 0);
    CHECK(punctual_task_init(&task, sizeof task) == 0);
    task.name = "task";
    task.run = body;
    task.data = &told;
    task.period_num_ns = 5000000;
    task.policy = policy;
    CHECK(punctual_periodic_add(periodic, &task, NULL) == 0);
    CHECK(punctual_periodic_build(periodic) == 0);
    CHECK(punctual_periodic_run(periodic, &options, 0) == 0);
    CHECK(punctual_stats_init(&stats, sizeof stats) == 0);
    CHECK(punctual_periodic_task_stats(periodic, 0, &stats) == 0);
    CHECK(stats.ran == told.ran && stats.over_release >= 3);
    CHECK(punctual_periodic_destroy(periodic) == 0);
    return told;
}

/* As run(), for a unit of a calendar: told once its budget is spent. */
static struct told run_unit(void)
{
    struct told told = {0, 0, 0};
    punctual_options options = plain(0);
    punctual_unit_counts counts;
    punctual_calendar *calendar;
    punctual_unit unit;

    CHECK(punctual_calendar_create(&calendar, 5000000) == 0);
    CHECK(punctual_unit_init(&unit, sizeof unit) == 0);
    unit.name = "unit";
    unit.run = stubborn;
    unit.data = &told;
    unit.budget_ns = 100000;
    unit.deadline_ns = 5000000;
    unit.policy = PUNCTUAL_POLICY_TERMINATE;
    CHECK(punctual_calendar_add(calendar, &unit, NULL) == 0);
    CHECK(punctual_calendar_build(calendar) == 0);
    CHECK(punctual_calendar_run(calendar, NULL, &options, 0) == 0);
    CHECK(punctual_unit_counts_init(&counts, sizeof counts) == 0);
    CHECK(punctual_calendar_task_counts(calendar, 0, &counts) == 0 && counts.ran == told.ran);
    CHECK(punctual_calendar_destroy(calendar) == 0);
    return told;
}

/* As run(), for a worker. */
static struct told run_worker(void)
{
    struct told told = {0, 0, 0};
    punctual_options options = plain(0);
    punctual_worker_outcome outcome;
    punctual_workers *workers;
    punctual_task task;

    options.priority = 50;
    CHECK(punctual_workers_create(&workers) == 0);
    CHECK(punctual_task_init(&task, sizeof task) == 0);
    task.name = "told";
    task.run = stubborn;
    task.data = &told;
    task.period_num_ns = 5000000;
    task.policy = PUNCTUAL_POLICY_TERMINATE;
    CHECK(punctual_workers_add(workers, &task, NULL) == 0);
    CHECK(punctual_workers_build(workers) == 0);
    CHECK(punctual_workers_run(workers, &options, 0) == 0);
    CHECK(punctual_worker_outcome_init(&outcome, sizeof outcome) == 0);
    CHECK(punctual_workers_task_outcome(workers, 0, &outcome) == 0 && outcome.overran >= 3);
    CHECK(punctual_workers_destroy(workers) == 0);
    return told;
}

int main(void)
{
    struct told told = run(stubborn, PUNCTUAL_POLICY_TERMINATE);

    CHECK(told.ran == 5 && told.told == 3 && told.early == 0);
    told = run_unit();
    CHECK(told.ran == 5 && told.told == 3 && told.early == 0);
    told = run_worker();
    CHECK(told.ran == 5 && told.told == 3 && told.early == 0);
    told = run(untold, PUNCTUAL_POLICY_SKIP);
    CHECK(told.ran == 3 && told.told == 0);
    CHECK(punctual_cycle_cancelled() == 0);
    return 0;
}
