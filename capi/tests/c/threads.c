/* A loop and an executive on threads of C's own, stopped and watched from another. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#include "check.h"

static _Atomic(punctual_loop *) shared;
static atomic_int destroy_now;

static void *run_loop(void *unused)
{
    punctual_options options = plain(1000000);
    punctual_loop *loop;
    punctual_cycle cycle;
    uint64_t next = 0;
    int error;

    CHECK(punctual_loop_create(&loop, &options) == 0);
    CHECK(punctual_cycle_init(&cycle, sizeof cycle) == 0);
    atomic_store(&shared, loop);
    while ((error = punctual_loop_wait(loop, &cycle)) == 0) {
        CHECK(cycle.n == next + cycle.missed);
        CHECK(cycle.next_ns > cycle.release_ns && (cycle.next_ns - cycle.release_ns) % 1000000 == 0);
        next = cycle.n + 1;
    }
    CHECK(error == -ECANCELED);
    while (!atomic_load(&destroy_now))
        punctual_wait_until_ns(punctual_now_ns() + 1000000, 0);
    CHECK(punctual_loop_destroy(loop) == 0);
    return unused;
}

static void watch_loop(void)
{
    punctual_loop *loop;
    punctual_stats stats;
    punctual_wait_info info;
    pthread_t thread;
    int64_t half_ns;
    int stopped = -1;

    CHECK(pthread_create(&thread, NULL, run_loop, NULL) == 0);
    while ((loop = atomic_load(&shared)) == NULL)
        punctual_wait_until_ns(punctual_now_ns() + 1000000, 0);
    CHECK(punctual_stats_init(&stats, sizeof stats) == 0);
    do {
        CHECK(punctual_loop_stats(loop, &stats) == 0);
    } while (stats.ran < 20);
    CHECK(stats.min_ns >= 0 && stats.max_ns >= stats.min_ns && stats.last_cycle >= 19);
    CHECK(punctual_loop_quantile_ns(loop, 0.5, &half_ns) == 0);
    CHECK(punctual_loop_wait(loop, NULL) == -EPERM);
    CHECK(punctual_wait_info_init(&info, sizeof info) == 0);
    CHECK(punctual_loop_wait_info(loop, &info) == -EPERM);
    CHECK(punctual_loop_destroy(loop) == -EPERM);
    CHECK(punctual_loop_stopped(loop, &stopped) == 0 && stopped == 0);
    CHECK(punctual_loop_stop(loop) == 0);
    CHECK(punctual_loop_stopped(loop, &stopped) == 0 && stopped == 1);
    atomic_store(&destroy_now, 1);
    CHECK(pthread_join(thread, NULL) == 0);
}

struct counts {
    atomic_uint ran;
    pthread_t caller;
};

static int count(void *data, const punctual_cycle *cycle)
{
    struct counts *counts = (struct counts *)data;

    counts->caller = pthread_self();
    atomic_fetch_add(&counts->ran, 1);
    return cycle->size == sizeof *cycle ? 0 : -EIO;
}

static void *run_executive(void *data)
{
    punctual_options options = plain(0);

    CHECK(punctual_executive_run((punctual_executive *)data, &options, 0) == 0);
    return NULL;
}

static void watch_tasks(void)
{
    struct counts counts = {0, pthread_self()};
    punctual_executive *executive;
    punctual_stats stats;
    punctual_task task;
    pthread_t thread;
    char text[256];

    CHECK(punctual_executive_create(&executive) == 0);
    CHECK(punctual_task_init(&task, sizeof task) == 0);
    task.name = "count";
    task.run = count;
    task.data = &counts;
    task.period_num_ns = 1000000;
    CHECK(punctual_executive_add(executive, &task, NULL) == 0);
    CHECK(punctual_executive_summary(executive, text, sizeof text) == -ENODATA);
    CHECK(pthread_create(&thread, NULL, run_executive, executive) == 0);
    CHECK(punctual_stats_init(&stats, sizeof stats) == 0);
    do {
        CHECK(punctual_executive_task_stats(executive, 0, &stats) == 0);
    } while (stats.ran < 20);
    CHECK(punctual_executive_run(executive, NULL, 1) == -EBUSY);
    CHECK(punctual_executive_summary(executive, text, sizeof text) == -EBUSY);
    CHECK(punctual_executive_destroy(executive) == -EBUSY);
    CHECK(punctual_executive_stop(executive) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(pthread_equal(counts.caller, thread));
    CHECK(punctual_executive_task_stats(executive, 0, &stats) == 0);
    CHECK(stats.ran == atomic_load(&counts.ran));
    CHECK(punctual_executive_summary(executive, text, sizeof text) == 0);
    CHECK(strncmp(text, "count: ", 7) == 0 && strstr(text, "stopped") != NULL);
    CHECK(punctual_executive_summary(executive, text, 6) == -ERANGE);
    CHECK(strcmp(text, "count") == 0);
    CHECK(punctual_executive_destroy(executive) == 0);
}

/* A task that must not be called once it is gone. */
struct guest {
    atomic_uint ran;
    atomic_int here;
};

static int visit(void *data, const punctual_cycle *cycle)
{
    struct guest *guest = (struct guest *)data;

    (void)cycle;
    CHECK(atomic_load(&guest->here));
    atomic_fetch_add(&guest->ran, 1);
    return PUNCTUAL_CONTINUE;
}

static int host(void *data, const punctual_cycle *cycle)
{
    uint64_t *next = (uint64_t *)data;

    /* Nobody who comes or goes costs it a release. */
    CHECK(*next == 0 || cycle->n == *next + cycle->missed);
    *next = cycle->n + 1;
    return PUNCTUAL_CONTINUE;
}

static void change_tasks(void)
{
    punctual_executive *executive;
    punctual_stats stats;
    punctual_task task;
    pthread_t thread;
    uint64_t next = 0;
    uint32_t index, last = 0;

    CHECK(punctual_executive_create(&executive) == 0);
    CHECK(punctual_task_init(&task, sizeof task) == 0);
    task.name = "host";
    task.run = host;
    task.data = &next;
    task.period_num_ns = 1000000;
    CHECK(punctual_executive_add(executive, &task, NULL) == 0);
    /* From now on what does not go together is refused at once. */
    CHECK(punctual_executive_build(executive, NULL) == 0);
    CHECK(pthread_create(&thread, NULL, run_executive, executive) == 0);
    CHECK(punctual_stats_init(&stats, sizeof stats) == 0);
    for (int n = 0; n < 10; n++) {
        struct guest guest = {0, 1};
        task.name = "guest";
        task.run = visit;
        task.data = &guest;
        task.period_num_ns = n % 2 ? 700000 : 3000000;
        task.on_overrun = n % 3 ? PUNCTUAL_OVERRUN_SKIP : PUNCTUAL_OVERRUN_TERMINATE;
        CHECK(punctual_executive_add(executive, &task, &index) == 0 && index == last + 1);
        CHECK(punctual_executive_add(executive, &task, NULL) == -EEXIST);
        last = index;
        do {
            CHECK(punctual_executive_task_stats(executive, index, &stats) == 0);
            CHECK(punctual_wait_until_ns(punctual_now_ns() + 1000000, 0) == 0);
        } while (stats.ran < 3);
        CHECK(punctual_executive_remove_counted(executive, index, NULL) == -EINVAL);
        if (n == 9)
            CHECK(punctual_executive_remove(executive, index) == 0);
        else
            CHECK(punctual_executive_remove_counted(executive, index, &stats) == 0);
        atomic_store(&guest.here, 0);
        CHECK(n == 9 || stats.ran == atomic_load(&guest.ran));
        CHECK(punctual_executive_task_stats(executive, index, &stats) == -ENOENT);
        CHECK(punctual_executive_remove(executive, index) == -ENOENT);
        CHECK(punctual_executive_remove_counted(executive, index, &stats) == -ENOENT);
        CHECK(atomic_load(&guest.ran) >= 3);
    }
    CHECK(punctual_executive_stop(executive) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(punctual_executive_task_stats(executive, 0, &stats) == 0 && stats.ran > 0);
    CHECK(punctual_executive_destroy(executive) == 0);
}

static void watch_units(void)
{
    struct counts counts = {0, pthread_self()};
    punctual_executive *executive;
    punctual_stats stats;
    punctual_unit unit;
    pthread_t thread;

    CHECK(punctual_executive_create(&executive) == 0);
    CHECK(punctual_executive_frame(executive, 1000000, 1) == 0);
    CHECK(punctual_unit_init(&unit, sizeof unit) == 0);
    unit.name = "count";
    unit.run = count;
    unit.data = &counts;
    unit.budget_ns = 1000;
    unit.deadline_ns = 1000000;
    CHECK(punctual_executive_add_unit(executive, &unit, NULL) == 0);
    CHECK(pthread_create(&thread, NULL, run_executive, executive) == 0);
    CHECK(punctual_stats_init(&stats, sizeof stats) == 0);
    do {
        CHECK(punctual_executive_task_stats(executive, 0, &stats) == 0);
    } while (stats.ran < 20);
    CHECK(punctual_executive_remove(executive, 0) == -EBUSY);
    CHECK(punctual_executive_run(executive, NULL, 1) == -EBUSY);
    CHECK(punctual_executive_destroy(executive) == -EBUSY);
    CHECK(punctual_executive_stop(executive) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(pthread_equal(counts.caller, thread));
    CHECK(punctual_executive_task_stats(executive, 0, &stats) == 0);
    CHECK(stats.ran == atomic_load(&counts.ran));
    CHECK(punctual_executive_destroy(executive) == 0);
}

/* Of the signal handler, and of the device that triggers "triggered". */
static punctual_executive *all;

static void on_signal(int signal)
{
    (void)signal;
    punctual_executive_stop(all);
}

static void stop_by_signal(void)
{
    struct counts counts = {0, pthread_self()};
    struct sigaction action = {0};
    punctual_stats stats;
    punctual_task task;
    pthread_t thread;

    action.sa_handler = on_signal;
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    CHECK(punctual_executive_create(&all) == 0);
    CHECK(punctual_task_init(&task, sizeof task) == 0);
    task.name = "count";
    task.run = count;
    task.data = &counts;
    task.period_num_ns = 1000000;
    CHECK(punctual_executive_add(all, &task, NULL) == 0);
    CHECK(pthread_create(&thread, NULL, run_executive, all) == 0);
    CHECK(punctual_stats_init(&stats, sizeof stats) == 0);
    do {
        CHECK(punctual_executive_task_stats(all, 0, &stats) == 0);
    } while (stats.ran < 5);
    CHECK(pthread_kill(thread, SIGUSR1) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(punctual_executive_destroy(all) == 0);
}

static pthread_t triggered_by;

static int device(void *data)
{
    int stopped;

    (void)data;
    triggered_by = pthread_self();
    CHECK(punctual_wait_until_ns(punctual_now_ns() + 1000000, 0) == 0);
    CHECK(punctual_executive_stopped(all, &stopped) == 0);
    return !stopped;
}

static void *run_threads(void *data)
{
    punctual_options options = plain(0);

    options.priority = 50;
    CHECK(punctual_executive_run((punctual_executive *)data, &options, 0) == 0);
    return NULL;
}

static void watch_threads(void)
{
    struct counts counts = {0, pthread_self()}, triggered = {0, pthread_self()};
    punctual_stats stats, distances;
    punctual_task task;
    pthread_t thread;
    int stopped;

    CHECK(punctual_executive_create(&all) == 0);
    CHECK(punctual_task_init(&task, sizeof task) == 0);
    task.name = "count";
    task.run = count;
    task.data = &counts;
    task.period_num_ns = 1000000;
    task.place = PUNCTUAL_PLACE_THREAD;
    CHECK(punctual_executive_add(all, &task, NULL) == 0);
    task.name = "triggered";
    task.data = &triggered;
    task.wait = device;
    CHECK(punctual_executive_add(all, &task, NULL) == 0);
    CHECK(punctual_stats_init(&stats, sizeof stats) == 0);
    CHECK(punctual_stats_init(&distances, sizeof distances) == 0);
    CHECK(punctual_executive_task_stats(all, 0, &stats) == 0 && stats.ran == 0);
    CHECK(pthread_create(&thread, NULL, run_threads, all) == 0);
    do {
        CHECK(punctual_executive_task_stats(all, 0, &stats) == 0);
        CHECK(punctual_executive_task_stats(all, 1, &distances) == 0);
        /* Where all threads share one CPU, as under valgrind, the others need it. */
        CHECK(punctual_wait_until_ns(punctual_now_ns() + 1000000, 0) == 0);
    } while (stats.ran < 20 || distances.ran < 5);
    CHECK(distances.min_ns >= 1000000 && distances.missed == 0);
    CHECK(punctual_executive_stopped(all, &stopped) == 0 && stopped == 0);
    CHECK(punctual_executive_remove(all, 0) == -EBUSY);
    CHECK(punctual_executive_run(all, NULL, 1) == -EBUSY);
    CHECK(punctual_executive_destroy(all) == -EBUSY);
    CHECK(punctual_executive_stop(all) == 0);
    CHECK(punctual_executive_stopped(all, &stopped) == 0 && stopped == 1);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(!pthread_equal(counts.caller, thread) && !pthread_equal(triggered.caller, thread));
    CHECK(!pthread_equal(counts.caller, triggered.caller));
    CHECK(pthread_equal(triggered.caller, triggered_by));
    CHECK(punctual_executive_task_stats(all, 0, &stats) == 0);
    CHECK(stats.ran == atomic_load(&counts.ran));
    CHECK(punctual_executive_destroy(all) == 0);
}

int main(void)
{
    watch_loop();
    watch_tasks();
    change_tasks();
    watch_units();
    stop_by_signal();
    watch_threads();
    return 0;
}
