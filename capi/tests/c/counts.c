/*
 * Every way to end that C has: ends DIRECTORY. Prints a line a task of each run: its kind, the way,
 * what disturbed it, the fewest and the most releases that its span can have, what was counted as
 * run and as missed (- - where the counts are gone), and the sample file with its run (- - for
 * none). Releases are counted one by one here, between stamps around the end.
 */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "check.h"

#define MS 1000000ull
#define PERIOD (10 * MS)
#define LONG (35 * MS)
#define DURATION (40 * PERIOD + PERIOD / 3)

/* Of a run all but the last, which is the end of one task. */
enum way { TIME, STOP, FLOW, ERROR, POLICY, WATCHDOG, WAYS, REMOVAL = WAYS };
enum by { NOTHING, STALL, OVERRUN, BYS };

static const char *const ways[] = {"time", "stop", "flow", "error", "policy", "watchdog",
                                   "removal"};
static const char *const bys[] = {"nothing", "stall", "overrun"};

static const char *directory;
static enum way way;
static enum by by;
static punctual_executive *executive;
static punctual_loop *_Atomic loop;
static atomic_int disturbs, ends;
/* Around the end: the last stamp before it, and one after it. */
static _Atomic uint64_t before_ns, after_ns;

static void rest(uint64_t ns)
{
    CHECK(punctual_wait_until_ns(punctual_now_ns() + ns, 0) == 0);
}

/* Releases from first_ns to end_ns, that one included. */
static uint64_t due(uint64_t first_ns, uint64_t end_ns)
{
    uint64_t count = 0;

    for (uint64_t at_ns = first_ns; at_ns <= end_ns; at_ns += PERIOD)
        count++;
    return count;
}

static int is_stopped(void)
{
    int stopped = 0;

    CHECK((loop ? punctual_loop_stopped(loop, &stopped)
                : punctual_executive_stopped(executive, &stopped)) == 0);
    return stopped;
}

/* What never returns, until somebody acts. */
static void hang(void)
{
    uint64_t stamp_ns = punctual_now_ns();

    while (!is_stopped()) {
        before_ns = stamp_ns;
        rest(MS);
        stamp_ns = punctual_now_ns();
    }
}

/* A task as its body has it. */
struct seen {
    const char *kind;
    _Atomic uint64_t first_ns, calls;
    int overruns, stalls, is_last, was_disturbed;
};

static int body(void *data, const punctual_cycle *cycle)
{
    struct seen *seen = (struct seen *)data;

    if (seen->calls == 0)
        seen->first_ns = cycle->release_ns - cycle->missed * PERIOD;
    seen->calls++;
    if (way == POLICY && seen->is_last)
        before_ns = punctual_now_ns();
    if (atomic_load(&disturbs) && !seen->was_disturbed &&
        ((by == OVERRUN && seen->overruns) || (by == STALL && seen->stalls))) {
        seen->was_disturbed = 1;
        rest(LONG);
    }
    if (!seen->is_last || !atomic_load(&ends) || is_stopped())
        return PUNCTUAL_CONTINUE;
    switch (way) {
    case FLOW:
        before_ns = punctual_now_ns();
        return PUNCTUAL_STOP;
    case ERROR:
        before_ns = punctual_now_ns();
        return -EIO;
    case POLICY:
        rest(LONG);
        break;
    case WATCHDOG:
        hang();
        break;
    default:
        break;
    }
    return PUNCTUAL_CONTINUE;
}

static int device(void *unused)
{
    (void)unused;
    rest(3 * MS);
    return !is_stopped();
}

static struct seen inline_task, unit_task, own_task, triggered_task, hog_task;

/* Beside the run: disturbs it, and ends it. */
static void *act(void *unused)
{
    struct seen *tasks[] = {&inline_task, &unit_task, &own_task, &triggered_task};
    uint64_t stamp_ns;

    for (int at = 0; at < 4; at++)
        while (tasks[at]->calls < 3 && !is_stopped())
            rest(MS);
    stamp_ns = punctual_now_ns();
    /* A busy machine ends it sooner; by its policy that shows too late here. */
    if (way != POLICY && !is_stopped())
        before_ns = stamp_ns;
    atomic_store(&disturbs, 1);
    if (way == TIME)
        return unused;
    rest(by == NOTHING ? MS : LONG / 2);
    if (way == STOP) {
        before_ns = punctual_now_ns();
        CHECK(punctual_executive_stop(executive) == 0);
    }
    atomic_store(&ends, 1);
    while (!is_stopped())
        rest(MS / 10);
    after_ns = punctual_now_ns();
    return unused;
}

static void say(const char *kind, uint64_t least, uint64_t most, const punctual_stats *stats,
                const char *file)
{
    printf("%s %s %s %" PRIu64 " %" PRIu64, kind, ways[way], bys[by], least, most);
    if (stats)
        printf(" %" PRIu64 " %" PRIu64, stats->ran, stats->missed);
    else
        printf(" - -");
    printf(" %s %s\n", file ? file : "-", file ? kind : "-");
}

static void run_tasks(void)
{
    static const int results[] = {0, 0, 0, -EIO, -ETIME, -ETIMEDOUT};
    punctual_options options = plain(0);
    struct seen *tasks[] = {&inline_task, &own_task, &hog_task, &triggered_task, &unit_task};
    static const char *const names[] = {"inline", "thread", "hog", "triggered", "unit"};
    punctual_task task;
    punctual_unit unit;
    punctual_stats stats;
    pthread_t beside;
    uint64_t first_ns = UINT64_MAX;
    char file[4096];

    snprintf(file, sizeof file, "%s/%s-%s", directory, ways[way], bys[by]);
    options.priority = 50;
    options.samples = file;
    if (way == WATCHDOG)
        options.watchdog_ns = 150 * MS;
    atomic_store(&disturbs, 0);
    atomic_store(&ends, 0);
    before_ns = after_ns = 0;
    CHECK(punctual_executive_create(&executive) == 0);
    CHECK(punctual_executive_frame(executive, PERIOD, 1) == 0);
    CHECK(punctual_task_init(&task, sizeof task) == 0);
    CHECK(punctual_unit_init(&unit, sizeof unit) == 0);
    for (int at = 0; at < 5; at++) {
        memset(tasks[at], 0, sizeof *tasks[at]);
        tasks[at]->kind = names[at];
        tasks[at]->stalls = at == 2;
        tasks[at]->overruns = at != 2;
        tasks[at]->is_last = at == 0;
    }
    task.run = body;
    task.period_num_ns = PERIOD;
    task.phase = PUNCTUAL_PHASE_AT;
    for (int at = 0; at < 3; at++) {
        task.name = names[at];
        task.data = tasks[at];
        task.phase_ns = (uint64_t)at * MS;
        task.budget_ns = MS / 10;
        task.place = at == 1 ? PUNCTUAL_PLACE_THREAD : PUNCTUAL_PLACE_INLINE;
        task.on_overrun = way == POLICY && at == 0 ? PUNCTUAL_OVERRUN_STOP : PUNCTUAL_OVERRUN_SKIP;
        CHECK(punctual_executive_add(executive, &task, NULL) == 0);
    }
    CHECK(punctual_task_init(&task, sizeof task) == 0);
    task.name = names[3];
    task.run = body;
    task.data = tasks[3];
    task.wait = device;
    CHECK(punctual_executive_add(executive, &task, NULL) == 0);
    unit.name = names[4];
    unit.run = body;
    unit.data = tasks[4];
    unit.at_ns = 6 * MS;
    unit.budget_ns = MS;
    CHECK(punctual_executive_add_unit(executive, &unit, NULL) == 0);
    CHECK(pthread_create(&beside, NULL, act, NULL) == 0);
    CHECK(punctual_executive_run(executive, &options, way == TIME ? DURATION : 0) == results[way]);
    CHECK(pthread_join(beside, NULL) == 0);
    CHECK(punctual_stats_init(&stats, sizeof stats) == 0);
    for (int at = 0; at < 5; at++)
        if (at != 3 && tasks[at]->calls > 0 && tasks[at]->first_ns < first_ns)
            first_ns = tasks[at]->first_ns;
    for (uint32_t at = 0; at < 5; at++) {
        uint64_t least, most, task_ns = tasks[at]->first_ns;
        CHECK(punctual_executive_task_stats(executive, at, &stats) == 0);
        if (at == 3) /* distances from start to start */
            least = most = tasks[at]->calls > 0 ? tasks[at]->calls - 1 : 0;
        else if (tasks[at]->calls == 0) /* it ended before: nothing shows its first release */
            least = 0, most = due(first_ns, after_ns);
        else if (way == TIME) /* what is due at its end is none of it */
            least = most = due(task_ns, first_ns + DURATION - 1);
        else
            least = due(task_ns, before_ns), most = due(task_ns, after_ns);
        say(names[at], least, most, &stats, at == 3 ? NULL : file);
    }
    CHECK(punctual_executive_destroy(executive) == 0);
}

static void *run_executive(void *options)
{
    CHECK(punctual_executive_run(executive, (punctual_options *)options, 0) == 0);
    return NULL;
}

/* A task that came while others run, and goes before they end. */
static void run_removal(void)
{
    punctual_options options = plain(0);
    punctual_task task;
    punctual_stats stats;
    pthread_t runs;
    uint32_t index;

    memset(&inline_task, 0, sizeof inline_task);
    memset(&hog_task, 0, sizeof hog_task);
    atomic_store(&ends, 0);
    CHECK(punctual_executive_create(&executive) == 0);
    CHECK(punctual_task_init(&task, sizeof task) == 0);
    task.run = body;
    task.period_num_ns = PERIOD;
    task.name = "inline";
    task.data = &inline_task;
    CHECK(punctual_executive_add(executive, &task, NULL) == 0);
    CHECK(pthread_create(&runs, NULL, run_executive, &options) == 0);
    while (inline_task.calls < 3)
        rest(MS);
    task.name = "added";
    task.data = &hog_task;
    CHECK(punctual_executive_add(executive, &task, &index) == 0);
    while (hog_task.calls < 3)
        rest(MS);
    CHECK(punctual_stats_init(&stats, sizeof stats) == 0);
    before_ns = punctual_now_ns();
    CHECK(punctual_executive_remove_counted(executive, index, &stats) == 0);
    after_ns = punctual_now_ns();
    CHECK(stats.ran == hog_task.calls);
    say("added", due(hog_task.first_ns, before_ns), due(hog_task.first_ns, after_ns), &stats, NULL);
    CHECK(punctual_executive_stop(executive) == 0);
    CHECK(pthread_join(runs, NULL) == 0);
    /* The counts of one that goes after the run are those of the run. */
    CHECK(punctual_executive_remove_counted(executive, 0, &stats) == 0);
    CHECK(stats.ran == inline_task.calls);
    CHECK(punctual_executive_destroy(executive) == 0);
}

/* Its owner: as long as it gets cycles. */
static void *own(void *data)
{
    punctual_options *options = (punctual_options *)data;
    punctual_loop *mine;
    punctual_stats stats;
    punctual_cycle cycle;
    uint64_t calls = 0, first_ns = 0;

    CHECK(punctual_loop_create(&mine, options) == 0);
    CHECK(punctual_cycle_init(&cycle, sizeof cycle) == 0);
    CHECK(punctual_stats_init(&stats, sizeof stats) == 0);
    atomic_store(&loop, mine);
    while (punctual_loop_wait(mine, &cycle) == 0) {
        if (calls++ == 0)
            first_ns = cycle.release_ns;
        if (by != NOTHING && calls == 4)
            rest(LONG); /* it makes no difference to a loop why it does not come back */
        if (calls == 8 && way == WATCHDOG)
            hang();
        if (calls == 8 && way == FLOW)
            break;
        if (calls == 8)
            atomic_store(&ends, 1);
    }
    if (way == FLOW) { /* its owner leaves it, and takes the counts along */
        before_ns = punctual_now_ns();
        CHECK(punctual_loop_destroy(mine) == 0);
        after_ns = punctual_now_ns();
        say("loop", due(first_ns, before_ns), due(first_ns, after_ns), NULL, options->samples);
        return NULL;
    }
    while (after_ns == 0)
        rest(MS);
    CHECK(punctual_loop_stats(mine, &stats) == 0);
    CHECK(punctual_loop_destroy(mine) == 0);
    say("loop", due(first_ns, before_ns), due(first_ns, after_ns), &stats, options->samples);
    return NULL;
}

static void run_loop(void)
{
    punctual_options options = plain(PERIOD);
    pthread_t owner;
    char file[4096];

    snprintf(file, sizeof file, "%s/loop-%s-%s", directory, ways[way], bys[by]);
    options.samples = file;
    if (way == WATCHDOG)
        options.watchdog_ns = 100 * MS;
    atomic_store(&ends, 0);
    before_ns = after_ns = 0;
    CHECK(pthread_create(&owner, NULL, own, &options) == 0);
    if (way != FLOW) {
        while (atomic_load(&loop) == NULL)
            rest(MS);
        while (way == STOP && !atomic_load(&ends))
            rest(MS);
        if (way == STOP) {
            before_ns = punctual_now_ns();
            CHECK(punctual_loop_stop(loop) == 0);
        }
        while (!is_stopped())
            rest(MS / 10);
        after_ns = punctual_now_ns();
    }
    CHECK(pthread_join(owner, NULL) == 0);
    atomic_store(&loop, NULL);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    directory = argv[1];
    for (int each = 0; each < WAYS * BYS; each++) {
        way = (enum way)(each / BYS);
        by = (enum by)(each % BYS);
        run_tasks();
        if (way == STOP || way == FLOW || way == WATCHDOG)
            run_loop();
    }
    way = REMOVAL;
    by = NOTHING;
    run_removal();
    return 0;
}
