/* What cannot be is answered by a number, never by a crash. */
#include <errno.h>
#include <string.h>

#include "check.h"

/* The call is refused, and its words begin with the argument that is null. */
#define NULL_IS(name, call)                                                     \
    do {                                                                        \
        CHECK(call == -EINVAL);                                                 \
        CHECK(strncmp(punctual_last_error(), name " ", sizeof name) == 0);      \
        CHECK(strstr(punctual_last_error(), " must ") != NULL);                 \
    } while (0)

static int body(void *data, const punctual_cycle *cycle)
{
    (void)data;
    return cycle == NULL;
}

static int no_cycle(void *data)
{
    return data != NULL;
}

static void no_objects(void)
{
    punctual_options options = plain(1000000);
    punctual_stats stats;
    punctual_wait_info info;
    punctual_cycle cycle;
    punctual_layout layout;
    punctual_task task;
    punctual_unit unit;
    punctual_process *process;
    punctual_watch *watch;
    struct timespec instant = {1, 0};
    size_t bytes;
    uint64_t peak;
    char text[8];
    int64_t ns;
    int stopped;

    NULL_IS("options", punctual_options_init(NULL, sizeof options));
    CHECK(punctual_options_init(&options, 8) == -EINVAL);
    CHECK(punctual_options_init(&options, 1 << 20) == -E2BIG);
    NULL_IS("task", punctual_task_init(NULL, sizeof task));
    NULL_IS("cycle", punctual_cycle_init(NULL, sizeof cycle));
    NULL_IS("stats", punctual_stats_init(NULL, sizeof stats));
    CHECK(punctual_stats_init(&stats, 0) == -EINVAL);
    NULL_IS("info", punctual_wait_info_init(NULL, 0));
    CHECK(punctual_stats_init(&stats, sizeof stats) == 0);
    NULL_IS("loop", punctual_loop_create(NULL, &options));
    NULL_IS("loop", punctual_loop_wait(NULL, &cycle));
    NULL_IS("loop", punctual_loop_stop(NULL));
    NULL_IS("loop", punctual_loop_stopped(NULL, NULL));
    NULL_IS("loop", punctual_loop_stats(NULL, &stats));
    NULL_IS("loop", punctual_loop_quantile_ns(NULL, 0.5, &ns));
    NULL_IS("loop", punctual_loop_wait_info(NULL, &info));
    NULL_IS("loop", punctual_loop_learned(NULL, text, sizeof text));
    NULL_IS("loop", punctual_loop_refused(NULL, text, sizeof text));
    NULL_IS("loop", punctual_loop_summary(NULL, text, sizeof text));
    CHECK(punctual_loop_destroy(NULL) == 0);
    NULL_IS("executive", punctual_executive_create(NULL));
    NULL_IS("executive", punctual_executive_add(NULL, &task, NULL));
    NULL_IS("executive", punctual_executive_add_unit(NULL, &unit, NULL));
    NULL_IS("executive", punctual_executive_remove(NULL, 0));
    NULL_IS("executive", punctual_executive_remove_counted(NULL, 0, &stats));
    NULL_IS("executive", punctual_executive_frame(NULL, 1000000, 1));
    NULL_IS("executive", punctual_executive_idle(NULL, 1000, no_cycle, NULL));
    NULL_IS("executive", punctual_executive_allow_overload(NULL));
    NULL_IS("executive", punctual_executive_build(NULL, NULL));
    NULL_IS("executive", punctual_executive_peak(NULL, &peak));
    NULL_IS("executive", punctual_executive_warnings(NULL, text, sizeof text));
    NULL_IS("executive", punctual_executive_task_layout(NULL, 0, &layout));
    NULL_IS("executive", punctual_executive_run(NULL, &options, 1));
    NULL_IS("executive", punctual_executive_stop(NULL));
    NULL_IS("executive", punctual_executive_stopped(NULL, &stopped));
    NULL_IS("executive", punctual_executive_task_stats(NULL, 0, &stats));
    NULL_IS("executive", punctual_executive_task_quantile_ns(NULL, 0, 0.5, &ns));
    NULL_IS("executive", punctual_executive_wait_info(NULL, &info));
    NULL_IS("executive", punctual_executive_learned(NULL, text, sizeof text));
    NULL_IS("executive", punctual_executive_refused(NULL, text, sizeof text));
    NULL_IS("executive", punctual_executive_summary(NULL, text, sizeof text));
    CHECK(punctual_executive_destroy(NULL) == 0);
    NULL_IS("unit", punctual_unit_init(NULL, sizeof unit));
    NULL_IS("layout", punctual_layout_init(NULL, sizeof layout));
    CHECK(punctual_layout_init(&layout, 8) == -EINVAL);
    NULL_IS("info", punctual_follow_info_init(NULL, 0));
    NULL_IS("follow", punctual_follow_create(NULL, PUNCTUAL_REFERENCE_TAI, NULL, 0));
    NULL_IS("follow", punctual_follow_status(NULL, NULL));
    CHECK(punctual_follow_destroy(NULL) == 0);
    NULL_IS("executive", punctual_executive_schedule(NULL));
    NULL_IS("from", punctual_ns_from_timespec(NULL, NULL));
    NULL_IS("to_ns", punctual_ns_from_timespec(&instant, NULL));
    NULL_IS("to", punctual_timespec_from_ns(0, NULL));
    NULL_IS("process", punctual_register(NULL, NULL));
    NULL_IS("process", punctual_join(NULL, "a", "b"));
    NULL_IS("supervisor", punctual_join(&process, NULL, "b"));
    NULL_IS("process", punctual_wait(NULL, &cycle));
    NULL_IS("process", punctual_cancelled(NULL, &stopped));
    NULL_IS("process", punctual_commit(NULL, text, sizeof text));
    CHECK(punctual_unregister(NULL) == 0);
    NULL_IS("watch", punctual_watch_open(NULL, "a", "b"));
    NULL_IS("supervisor", punctual_watch_open(&watch, "a", NULL));
    NULL_IS("watch", punctual_watch_period(NULL, &peak, &peak));
    NULL_IS("watch", punctual_watch_stats(NULL, &stats));
    NULL_IS("watch", punctual_watch_quantile_ns(NULL, 0.5, &ns));
    NULL_IS("watch", punctual_watch_output_size(NULL, &bytes));
    NULL_IS("watch", punctual_watch_output(NULL, text, sizeof text, NULL));
    NULL_IS("watch", punctual_watch_supervised(NULL, &stopped));
    CHECK(punctual_watch_close(NULL) == 0);
}

static void bad_loops(void)
{
    static const uint64_t periods[] = {0, ((uint64_t)1 << 62) + 1, UINT64_MAX};
    punctual_loop *loop = (punctual_loop *)8;
    punctual_options options;
    punctual_follow *follow;
    char learned[PUNCTUAL_LEARNED_BYTES];
    struct {
        punctual_options options;
        uint64_t newer;
    } larger;

    for (size_t i = 0; i < sizeof periods / sizeof periods[0]; i++) {
        options = plain(periods[i]);
        CHECK(punctual_loop_create(&loop, &options) == -EINVAL && loop == NULL);
        CHECK(strstr(punctual_last_error(), "a period of") != NULL);
    }
    NULL_IS("options", punctual_loop_create(&loop, NULL));
    options = plain(1000000);
    options.size = 1;
    CHECK(punctual_loop_create(&loop, &options) == -EINVAL);
    options.size = 0;
    CHECK(punctual_loop_create(&loop, &options) == -EINVAL);
    CHECK(strstr(punctual_last_error(), "a size that no version has: call punctual_options_init(&options, "
                                        "sizeof options)") != NULL);
    memset(&options, 0, sizeof options);
    CHECK(punctual_loop_create(&loop, &options) == -EINVAL);
    CHECK(strstr(punctual_last_error(), "punctual_options_init") != NULL);
    larger.options = plain(1000000);
    larger.options.size = sizeof larger;
    larger.newer = 1;
    CHECK(punctual_loop_create(&loop, &larger.options) == -E2BIG);
    CHECK(strstr(punctual_last_error(), "sets what this library does not know") != NULL);
    larger.newer = 0;
    CHECK(punctual_loop_create(&loop, &larger.options) == 0);
    CHECK(punctual_loop_quantile_ns(loop, 2.0, NULL) == -EINVAL);
    CHECK(punctual_loop_wait(loop, NULL) == 0);
    NULL_IS("to_ns", punctual_loop_quantile_ns(loop, 0.5, NULL));
    NULL_IS("to", punctual_loop_stopped(loop, NULL));
    NULL_IS("stats", punctual_loop_stats(loop, NULL));
    NULL_IS("info", punctual_loop_wait_info(loop, NULL));
    NULL_IS("bytes", punctual_loop_learned(loop, NULL, PUNCTUAL_LEARNED_BYTES));
    CHECK(punctual_loop_learned(loop, learned, sizeof learned - 1) == -ERANGE);
    CHECK(strstr(punctual_last_error(), "room for 56 bytes (got 55)") != NULL);
    CHECK(punctual_loop_learned(loop, learned, sizeof learned) == -ENODATA);
    CHECK(strstr(punctual_last_error(), "PUNCTUAL_WAIT_ADAPTIVE") != NULL);
    NULL_IS("text", punctual_loop_refused(loop, NULL, 8));
    NULL_IS("text", punctual_loop_summary(loop, NULL, 8));
    CHECK(punctual_loop_wait(loop, NULL) == 0); /* it was not ended by that */
    CHECK(punctual_loop_destroy(loop) == 0);

    /* A period of 200 ms is longer than the pace of a clock is known ahead, unless it is said. */
    options = plain(200000000);
    CHECK(punctual_follow_create(&follow, PUNCTUAL_REFERENCE_TAI, NULL, 0) == 0);
    options.follow = follow;
    CHECK(punctual_loop_create(&loop, &options) == -EINVAL);
    CHECK(strstr(punctual_last_error(), "period_ns of punctual_follow_create()") != NULL);
    CHECK(punctual_follow_destroy(follow) == 0);
    CHECK(punctual_follow_create(&follow, PUNCTUAL_REFERENCE_TAI, NULL, 200000000) == 0);
    options.follow = follow;
    CHECK(punctual_loop_create(&loop, &options) == 0);
    CHECK(punctual_follow_destroy(follow) == 0);
    CHECK(punctual_loop_destroy(loop) == 0);
}

static void bad_tasks(void)
{
    punctual_executive *executive = (punctual_executive *)8;
    punctual_options options = plain(0);
    punctual_layout layout;
    punctual_stats stats;
    punctual_task task;
    uint32_t index = 7;
    int stopped;

    CHECK(punctual_executive_create(&executive) == 0);
    CHECK(punctual_executive_build(executive, NULL) == -EINVAL);
    CHECK(punctual_executive_run(executive, NULL, 1) == -EINVAL);
    NULL_IS("to", punctual_executive_stopped(executive, NULL));
    CHECK(punctual_executive_stopped(executive, &stopped) == 0 && stopped == 0);
    CHECK(punctual_task_init(&task, sizeof task) == 0);
    NULL_IS("task", punctual_executive_add(executive, NULL, NULL));
    NULL_IS("unit", punctual_executive_add_unit(executive, NULL, NULL));
    task.size = 0;
    CHECK(punctual_executive_add(executive, &task, &index) == -EINVAL && index == 7);
    CHECK(strstr(punctual_last_error(), "call punctual_task_init(&task, sizeof task)") != NULL);
    task.size = sizeof task;
    CHECK(punctual_executive_add(executive, &task, &index) == -EINVAL && index == 7);
    task.name = "\xff";
    CHECK(punctual_executive_add(executive, &task, &index) == -EINVAL);
    CHECK(strstr(punctual_last_error(), "UTF-8") != NULL);
    task.name = "arm";
    CHECK(punctual_executive_add(executive, &task, &index) == -EINVAL);
    CHECK(strstr(punctual_last_error(), "\"arm\": no function") != NULL);
    task.run = body;
    CHECK(punctual_executive_add(executive, &task, &index) == -EINVAL);
    CHECK(strstr(punctual_last_error(), "\"arm\": a period") != NULL);
    task.period_num_ns = 1000000;
    task.on_overrun = 99;
    CHECK(punctual_executive_add(executive, &task, &index) == -EINVAL);
    task.on_overrun = PUNCTUAL_OVERRUN_SKIP;
    task.place = 99;
    CHECK(punctual_executive_add(executive, &task, &index) == -EINVAL);
    CHECK(strstr(punctual_last_error(), "no place is numbered 99") != NULL);
    task.place = PUNCTUAL_PLACE_CPU;
    CHECK(punctual_executive_add(executive, &task, &index) == -EINVAL);
    CHECK(strstr(punctual_last_error(), "place_cpu") != NULL);
    task.place = PUNCTUAL_PLACE_INLINE;
    task.trigger_fd = -2;
    CHECK(punctual_executive_add(executive, &task, &index) == -EINVAL);
    CHECK(strstr(punctual_last_error(), "(got -2)") != NULL);
    task.trigger_fd = 0;
    task.wait = no_cycle;
    CHECK(punctual_executive_add(executive, &task, &index) == -EINVAL);
    CHECK(strstr(punctual_last_error(), "both wait and trigger_fd") != NULL);
    task.wait = NULL;
    task.trigger_fd = 1 << 20;
    CHECK(punctual_executive_add(executive, &task, NULL) == -EBADF);
    CHECK(strstr(punctual_last_error(), "trigger_fd 1048576 is no open descriptor") != NULL);
    task.trigger_fd = -1;
    task.budget_ns = 1000001;
    CHECK(punctual_executive_add(executive, &task, &index) == 0 && index == 0);
    CHECK(punctual_executive_build(executive, &options) == -EINVAL);
    CHECK(strstr(punctual_last_error(), "(got 1000001 ns)") != NULL);
    CHECK(punctual_executive_destroy(executive) == 0);

    CHECK(punctual_executive_create(&executive) == 0);
    task.budget_ns = 0;
    CHECK(punctual_executive_add(executive, &task, NULL) == 0);
    CHECK(punctual_layout_init(&layout, sizeof layout) == 0);
    CHECK(punctual_executive_task_layout(executive, 0, &layout) == -EINVAL);
    CHECK(punctual_executive_build(executive, &options) == 0);
    CHECK(punctual_executive_task_layout(executive, 0, &layout) == 0 && layout.rank == 0);
    NULL_IS("layout", punctual_executive_task_layout(executive, 0, NULL));
    NULL_IS("to", punctual_executive_peak(executive, NULL));
    NULL_IS("stats", punctual_executive_task_stats(executive, 0, NULL));
    CHECK(layout.response_ns == 0 && layout.deadline_ns == 1000000);
    CHECK(punctual_executive_task_layout(executive, 1, &layout) == -ENOENT);
    options.period_num_ns = 1000000;
    CHECK(punctual_executive_run(executive, &options, 1) == -EINVAL);
    CHECK(strstr(punctual_last_error(), "it has none itself") != NULL);
    options = plain(0);
    options.cpu_count = 2;
    CHECK(punctual_executive_run(executive, &options, 1) == -EINVAL);
    CHECK(strstr(punctual_last_error(), "cpus is null") != NULL);
    options.size = 3;
    CHECK(punctual_executive_run(executive, &options, 1) == -EINVAL);
    CHECK(punctual_stats_init(&stats, sizeof stats) == 0);
    CHECK(punctual_executive_task_stats(executive, 1, &stats) == -ENOENT);
    stats.size = 3;
    CHECK(punctual_executive_task_stats(executive, 0, &stats) == -EINVAL);
    CHECK(strstr(punctual_last_error(), "call punctual_stats_init(") != NULL);
    CHECK(punctual_executive_destroy(executive) == 0);
}

static void bad_units(void)
{
    punctual_options options = plain(0);
    punctual_executive *executive;
    punctual_unit unit;
    uint32_t index = 7;

    CHECK(punctual_executive_create(&executive) == 0);
    CHECK(punctual_executive_frame(executive, 0, 1) == -EINVAL);
    CHECK(punctual_executive_frame(executive, 1000000, 1) == 0);
    CHECK(punctual_unit_init(&unit, sizeof unit) == 0);
    CHECK(punctual_executive_add_unit(executive, &unit, &index) == -EINVAL && index == 7);
    unit.name = "read";
    unit.run = body;
    unit.budget_ns = 400000;
    CHECK(punctual_executive_add_unit(executive, &unit, &index) == 0 && index == 0);
    unit.name = "write";
    unit.at_ns = 399999;
    CHECK(punctual_executive_add_unit(executive, &unit, &index) == 0 && index == 1);
    CHECK(punctual_executive_build(executive, &options) == -ENOSPC);
    CHECK(strcmp(punctual_last_error(), "unit \"read\" at 0 to 400000 ns and unit \"write\" at "
                                        "399999 to 799999 ns overlap") == 0);
    CHECK(punctual_executive_run(executive, &options, 1) == -ENOSPC);
    unit.name = "later";
    unit.after = "read";
    CHECK(punctual_executive_add_unit(executive, &unit, &index) == -EINVAL);
    CHECK(strstr(punctual_last_error(), "\"later\": it is after another unit") != NULL);
    /* With places made for them both fit; a third of the same length does not. */
    CHECK(punctual_executive_schedule(executive) == 0);
    CHECK(punctual_executive_build(executive, &options) == 0);
    unit.at_ns = 0;
    CHECK(punctual_executive_add_unit(executive, &unit, &index) == -ENOSPC && index == 1);
    CHECK(strcmp(punctual_last_error(), "units \"write\" and \"later\" take 800 µs, and are ready "
                                        "and due from 400 µs to 1.00 ms of the frame, which is 600 "
                                        "µs") == 0);
    unit.after = NULL;
    unit.budget_ns = 1000;
    unit.every_ns = 300000;
    CHECK(punctual_executive_add_unit(executive, &unit, &index) == -EINVAL);
    CHECK(strstr(punctual_last_error(), "must divide the frame of 1000000 ns") != NULL);
    unit.every_ns = 250000;
    unit.excludes = "nobody";
    CHECK(punctual_executive_add_unit(executive, &unit, &index) == -ENOENT);
    unit.excludes = "read";
    CHECK(punctual_executive_add_unit(executive, &unit, &index) == 0 && index == 2);
    CHECK(punctual_executive_destroy(executive) == 0);
}

static void bad_triggers(void)
{
    punctual_options options = plain(0);
    punctual_executive *executive;
    punctual_task task;

    CHECK(punctual_executive_create(&executive) == 0);
    CHECK(punctual_executive_idle(executive, 0, no_cycle, NULL) == -EINVAL);
    CHECK(punctual_executive_idle(executive, 1000, NULL, NULL) == -EINVAL);
    CHECK(punctual_task_init(&task, sizeof task) == 0);
    task.name = "arm";
    task.run = body;
    task.wait = no_cycle;
    task.on_overrun = PUNCTUAL_OVERRUN_STOP;
    CHECK(punctual_executive_add(executive, &task, NULL) == 0);
    CHECK(punctual_executive_build(executive, &options) == -EINVAL);
    CHECK(strstr(punctual_last_error(), "device") != NULL);
    task.on_overrun = PUNCTUAL_OVERRUN_SKIP;
    CHECK(punctual_executive_remove(executive, 0) == 0);
    CHECK(punctual_executive_add(executive, &task, NULL) == 0);
    CHECK(punctual_executive_add(executive, &task, NULL) == 0);
    CHECK(punctual_executive_build(executive, &options) == -EEXIST);
    CHECK(strstr(punctual_last_error(), "\"arm\"") != NULL);
    CHECK(punctual_executive_destroy(executive) == 0);
}

static void bad_follows(void)
{
    punctual_follow *follow = (punctual_follow *)8;

    CHECK(punctual_follow_create(&follow, 7, NULL, 0) == -EINVAL && follow == NULL);
    CHECK(punctual_follow_create(&follow, PUNCTUAL_REFERENCE_PTP, NULL, 0) == -EINVAL);
    CHECK(punctual_follow_create(&follow, PUNCTUAL_REFERENCE_PTP, "/nowhere/ptp0", 0) == -ENOENT);
    CHECK(punctual_follow_create(&follow, PUNCTUAL_REFERENCE_TAI, NULL, 0) == 0);
    NULL_IS("info", punctual_follow_status(follow, NULL));
    CHECK(punctual_follow_destroy(follow) == 0);
}

int main(void)
{
    no_objects();
    bad_loops();
    bad_tasks();
    bad_units();
    bad_triggers();
    bad_follows();
    CHECK(strlen(punctual_strerror(-EINVAL)) > 0 && strlen(punctual_strerror(12345)) > 0);
    return 0;
}
