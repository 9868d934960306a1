/* What cannot be is answered by a number, never by a crash. */
#include <errno.h>
#include <string.h>

#include "check.h"

static int body(void *data, const punctual_cycle *cycle)
{
    (void)data;
    return cycle == NULL;
}

static void no_objects(void)
{
    punctual_options options = plain(1000000);
    punctual_stats stats;
    punctual_wait_info info;
    punctual_cycle cycle;
    punctual_task task;
    char text[8];
    int64_t ns;

    CHECK(punctual_options_init(NULL, sizeof options) == -EINVAL);
    CHECK(punctual_options_init(&options, 8) == -EINVAL);
    CHECK(punctual_options_init(&options, 1 << 20) == -E2BIG);
    CHECK(punctual_task_init(NULL, sizeof task) == -EINVAL);
    CHECK(punctual_cycle_init(NULL, sizeof cycle) == -EINVAL);
    CHECK(punctual_stats_init(&stats, 0) == -EINVAL);
    CHECK(punctual_wait_info_init(NULL, 0) == -EINVAL);
    CHECK(punctual_stats_init(&stats, sizeof stats) == 0);
    CHECK(punctual_loop_create(NULL, &options) == -EINVAL);
    CHECK(punctual_loop_wait(NULL, &cycle) == -EINVAL);
    CHECK(punctual_loop_stop(NULL) == -EINVAL);
    CHECK(punctual_loop_stats(NULL, &stats) == -EINVAL);
    CHECK(punctual_loop_quantile_ns(NULL, 0.5, &ns) == -EINVAL);
    CHECK(punctual_loop_wait_info(NULL, &info) == -EINVAL);
    CHECK(punctual_loop_refused(NULL, text, sizeof text) == -EINVAL);
    CHECK(punctual_loop_destroy(NULL) == 0);
    CHECK(punctual_periodic_create(NULL) == -EINVAL);
    CHECK(punctual_periodic_add(NULL, &task, NULL) == -EINVAL);
    CHECK(punctual_periodic_remove(NULL, 0) == -EINVAL);
    CHECK(punctual_periodic_build(NULL) == -EINVAL);
    CHECK(punctual_periodic_run(NULL, &options, 1) == -EINVAL);
    CHECK(punctual_periodic_stop(NULL) == -EINVAL);
    CHECK(punctual_periodic_task_stats(NULL, 0, &stats) == -EINVAL);
    CHECK(punctual_periodic_destroy(NULL) == 0);
    CHECK(punctual_ns_from_timespec(NULL, NULL) == -EINVAL);
    CHECK(punctual_timespec_from_ns(0, NULL) == -EINVAL);
}

static void bad_loops(void)
{
    static const uint64_t periods[] = {0, ((uint64_t)1 << 62) + 1, UINT64_MAX};
    punctual_loop *loop = (punctual_loop *)8;
    punctual_options options;
    struct {
        punctual_options options;
        uint64_t newer;
    } larger;

    for (size_t i = 0; i < sizeof periods / sizeof periods[0]; i++) {
        options = plain(periods[i]);
        CHECK(punctual_loop_create(&loop, &options) == -EINVAL && loop == NULL);
        CHECK(strstr(punctual_last_error(), "a period of") != NULL);
    }
    CHECK(punctual_loop_create(&loop, NULL) == -EINVAL);
    CHECK(strcmp(punctual_last_error(), "") == 0);
    options = plain(1000000);
    options.size = 1;
    CHECK(punctual_loop_create(&loop, &options) == -EINVAL);
    options.size = 0;
    CHECK(punctual_loop_create(&loop, &options) == -EINVAL);
    larger.options = plain(1000000);
    larger.options.size = sizeof larger;
    larger.newer = 1;
    CHECK(punctual_loop_create(&loop, &larger.options) == -E2BIG);
    larger.newer = 0;
    CHECK(punctual_loop_create(&loop, &larger.options) == 0);
    CHECK(punctual_loop_quantile_ns(loop, 2.0, NULL) == -EINVAL);
    CHECK(punctual_loop_wait(loop, NULL) == 0);
    CHECK(punctual_loop_quantile_ns(loop, 0.5, NULL) == -EINVAL);
    CHECK(punctual_loop_destroy(loop) == 0);
}

static void bad_executives(void)
{
    punctual_options options = plain(1000000);
    punctual_periodic *periodic;
    punctual_stats stats;
    punctual_task task;
    uint32_t index = 7;

    CHECK(punctual_periodic_create(&periodic) == 0);
    CHECK(punctual_periodic_build(periodic) == -EINVAL);
    CHECK(punctual_periodic_run(periodic, NULL, 1) == -EINVAL);
    CHECK(punctual_task_init(&task, sizeof task) == 0);
    CHECK(punctual_periodic_add(periodic, NULL, NULL) == -EINVAL);
    CHECK(punctual_periodic_add(periodic, &task, &index) == -EINVAL && index == 7);
    task.name = "\xff";
    CHECK(punctual_periodic_add(periodic, &task, &index) == -EINVAL);
    CHECK(strstr(punctual_last_error(), "UTF-8") != NULL);
    task.name = "arm";
    CHECK(punctual_periodic_add(periodic, &task, &index) == -EINVAL);
    CHECK(strstr(punctual_last_error(), "\"arm\": no function") != NULL);
    task.run = body;
    CHECK(punctual_periodic_add(periodic, &task, &index) == -EINVAL);
    CHECK(strstr(punctual_last_error(), "\"arm\": a period") != NULL);
    task.period_num_ns = 1000000;
    task.policy = 99;
    CHECK(punctual_periodic_add(periodic, &task, &index) == -EINVAL);
    task.policy = PUNCTUAL_POLICY_SKIP;
    task.budget_ns = 1000001;
    CHECK(punctual_periodic_add(periodic, &task, &index) == 0 && index == 0);
    CHECK(punctual_periodic_build(periodic) == -EINVAL);
    CHECK(strstr(punctual_last_error(), "budget of 1000001 ns") != NULL);
    CHECK(punctual_periodic_destroy(periodic) == 0);

    CHECK(punctual_periodic_create(&periodic) == 0);
    task.budget_ns = 0;
    CHECK(punctual_periodic_add(periodic, &task, NULL) == 0);
    CHECK(punctual_periodic_build(periodic) == 0);
    CHECK(punctual_periodic_build(periodic) == -EBUSY);
    CHECK(punctual_periodic_run(periodic, &options, 1) == -EINVAL);
    CHECK(strstr(punctual_last_error(), "it has none itself") != NULL);
    CHECK(punctual_stats_init(&stats, sizeof stats) == 0);
    CHECK(punctual_periodic_task_stats(periodic, 1, &stats) == -ENOENT);
    stats.size = 3;
    CHECK(punctual_periodic_task_stats(periodic, 0, &stats) == -EINVAL);
    CHECK(punctual_periodic_destroy(periodic) == 0);
}

static void bad_calendars(void)
{
    punctual_calendar *calendar = (punctual_calendar *)8;
    punctual_options options = plain(0);
    punctual_unit_counts counts;
    punctual_unit unit;
    uint32_t index = 7;
    uint64_t ns;

    CHECK(punctual_calendar_create(NULL, 1000000) == -EINVAL);
    CHECK(punctual_calendar_create(&calendar, 0) == -EINVAL && calendar == NULL);
    CHECK(punctual_calendar_add(NULL, &unit, NULL) == -EINVAL);
    CHECK(punctual_calendar_build(NULL) == -EINVAL);
    CHECK(punctual_calendar_run(NULL, NULL, &options, 1) == -EINVAL);
    CHECK(punctual_calendar_stop(NULL) == -EINVAL);
    CHECK(punctual_calendar_destroy(NULL) == 0);
    CHECK(punctual_unit_init(NULL, sizeof unit) == -EINVAL);
    CHECK(punctual_unit_counts_init(&counts, 8) == -EINVAL);

    CHECK(punctual_calendar_create(&calendar, 1000000) == 0);
    CHECK(punctual_unit_init(&unit, sizeof unit) == 0);
    CHECK(punctual_calendar_add(calendar, &unit, &index) == -EINVAL && index == 7);
    unit.name = "read";
    unit.run = body;
    unit.budget_ns = 400000;
    CHECK(punctual_calendar_add(calendar, &unit, &index) == 0 && index == 0);
    unit.name = "write";
    unit.ready_ns = 399999;
    CHECK(punctual_calendar_add(calendar, &unit, &index) == 0 && index == 1);
    CHECK(punctual_calendar_build(calendar) == -ENOSPC);
    CHECK(strcmp(punctual_last_error(), "unit \"read\" at 0 to 400000 ns and unit \"write\" at "
                                        "399999 to 799999 ns overlap") == 0);
    CHECK(punctual_calendar_place(calendar, 0, &ns, &ns) == -EINVAL);
    CHECK(punctual_calendar_run(calendar, NULL, &options, 1) == -EINVAL);
    CHECK(punctual_calendar_destroy(calendar) == 0);

    CHECK(punctual_calendar_create(&calendar, 1000000) == 0);
    CHECK(punctual_calendar_add(calendar, &unit, NULL) == 0);
    CHECK(punctual_calendar_build(calendar) == 0);
    CHECK(punctual_calendar_place(calendar, 0, &ns, NULL) == -EINVAL);
    CHECK(punctual_unit_counts_init(&counts, sizeof counts) == 0);
    CHECK(punctual_calendar_task_counts(calendar, 0, &counts) == -ENODATA);
    CHECK(punctual_calendar_task_counts(calendar, 1, &counts) == -ENOENT);
    options.period_num_ns = 1;
    CHECK(punctual_calendar_run(calendar, NULL, &options, 1) == -EINVAL);
    CHECK(punctual_calendar_destroy(calendar) == 0);
}

static int no_cycle(void *data)
{
    return data != NULL;
}

static void bad_workers(void)
{
    punctual_workers *workers = (punctual_workers *)8;
    punctual_options options = plain(0);
    punctual_worker_outcome outcome;
    punctual_task task;
    uint32_t index = 7;
    int ending;

    CHECK(punctual_workers_create(NULL) == -EINVAL);
    CHECK(punctual_workers_add(NULL, &task, NULL) == -EINVAL);
    CHECK(punctual_workers_build(NULL) == -EINVAL);
    CHECK(punctual_workers_run(NULL, &options, 1) == -EINVAL);
    CHECK(punctual_workers_stop(NULL) == -EINVAL);
    CHECK(punctual_workers_ending(NULL, &ending) == -EINVAL);
    CHECK(punctual_workers_destroy(NULL) == 0);
    CHECK(punctual_worker_outcome_init(&outcome, 8) == -EINVAL);

    CHECK(punctual_workers_create(&workers) == 0);
    CHECK(punctual_workers_ending(workers, NULL) == -EINVAL);
    CHECK(punctual_task_init(&task, sizeof task) == 0);
    CHECK(punctual_workers_add(workers, &task, &index) == -EINVAL && index == 7);
    task.name = "arm";
    task.run = body;
    CHECK(punctual_workers_add(workers, &task, &index) == -EINVAL);
    CHECK(strstr(punctual_last_error(), "\"arm\": a period") != NULL);
    task.period_num_ns = 1000000;
    CHECK(punctual_workers_add_external(workers, &task, NULL, &index) == -EINVAL);
    CHECK(punctual_workers_add(workers, &task, &index) == 0 && index == 0);
    CHECK(punctual_workers_add_external(workers, &task, no_cycle, &index) == 0 && index == 1);
    CHECK(punctual_workers_build(workers) == -EEXIST);
    CHECK(strstr(punctual_last_error(), "\"arm\"") != NULL);
    CHECK(punctual_workers_run(workers, &options, 1) == -EINVAL);
    CHECK(punctual_workers_destroy(workers) == 0);

    CHECK(punctual_workers_create(&workers) == 0);
    CHECK(punctual_workers_add(workers, &task, NULL) == 0);
    CHECK(punctual_workers_build(workers) == 0);
    CHECK(punctual_workers_run(workers, &options, 1) == -EINVAL); /* of no priority */
    options.priority = 50;
    options.size = 3;
    CHECK(punctual_workers_run(workers, &options, 1) == -EINVAL);
    outcome.size = 0;
    CHECK(punctual_workers_task_outcome(workers, 0, &outcome) == -ENODATA);
    CHECK(punctual_workers_task_outcome(workers, 1, &outcome) == -ENOENT);
    CHECK(punctual_workers_destroy(workers) == 0);
}

int main(void)
{
    no_objects();
    bad_loops();
    bad_executives();
    bad_calendars();
    bad_workers();
    CHECK(strlen(punctual_strerror(-EINVAL)) > 0 && strlen(punctual_strerror(12345)) > 0);
    return 0;
}
