/*
 * A task that runs over its release, or a unit over its budget, is told where it is to be
 * terminated, and returns: inline, as a unit of a calendar, and in a thread of its own.
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

static struct told run(punctual_task_fn body, int on_overrun, int place)
{
    struct told told = {0, 0, 0};
    punctual_options options = plain(0);
    punctual_executive *executive;
    punctual_stats stats;
    punctual_task task;

    CHECK(punctual_executive_create(&executive) == 0);
    CHECK(punctual_task_init(&task, sizeof task) == 0);
    task.name = "task";
    task.run = body;
    task.data = &told;
    task.period_num_ns = 5000000;
    task.on_overrun = on_overrun;
    task.place = place;
    if (place == PUNCTUAL_PLACE_THREAD)
        options.priority = 50;
    CHECK(punctual_executive_add(executive, &task, NULL) == 0);
    CHECK(punctual_executive_run(executive, &options, 0) == 0);
    CHECK(punctual_stats_init(&stats, sizeof stats) == 0);
    CHECK(punctual_executive_task_stats(executive, 0, &stats) == 0);
    CHECK(stats.ran == told.ran && stats.over_release >= 3);
    CHECK(punctual_executive_destroy(executive) == 0);
    return told;
}

/* As run(), for a unit of a calendar: told once its budget is spent. */
static struct told run_unit(void)
{
    struct told told = {0, 0, 0};
    punctual_options options = plain(0);
    punctual_executive *executive;
    punctual_stats stats;
    punctual_unit unit;

    CHECK(punctual_executive_create(&executive) == 0);
    CHECK(punctual_executive_frame(executive, 5000000, 1) == 0);
    CHECK(punctual_unit_init(&unit, sizeof unit) == 0);
    unit.name = "unit";
    unit.run = stubborn;
    unit.data = &told;
    unit.budget_ns = 100000;
    unit.deadline_ns = 5000000;
    unit.on_overrun = PUNCTUAL_OVERRUN_TERMINATE;
    CHECK(punctual_executive_add_unit(executive, &unit, NULL) == 0);
    CHECK(punctual_executive_run(executive, &options, 0) == 0);
    CHECK(punctual_stats_init(&stats, sizeof stats) == 0);
    CHECK(punctual_executive_task_stats(executive, 0, &stats) == 0 && stats.ran == told.ran);
    CHECK(punctual_executive_destroy(executive) == 0);
    return told;
}

int main(void)
{
    struct told told = run(stubborn, PUNCTUAL_OVERRUN_TERMINATE, PUNCTUAL_PLACE_INLINE);

    CHECK(told.ran == 5 && told.told == 3 && told.early == 0);
    told = run_unit();
    CHECK(told.ran == 5 && told.told == 3 && told.early == 0);
    told = run(stubborn, PUNCTUAL_OVERRUN_TERMINATE, PUNCTUAL_PLACE_THREAD);
    CHECK(told.ran == 5 && told.told == 3 && told.early == 0);
    told = run(untold, PUNCTUAL_OVERRUN_SKIP, PUNCTUAL_PLACE_INLINE);
    CHECK(told.ran == 3 && told.told == 0);
    CHECK(punctual_cycle_cancelled() == 0);
    return 0;
}
